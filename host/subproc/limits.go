package subproc

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits bound a plugin's process. 0 means the default.
type Limits struct {
	// Memory in bytes; the default is three quarters of the machine's memory.
	Memory int64
	// CPU is the number of processors; the default is all.
	CPU float64
	// OpenFiles is the number of open files; the default is the host's own.
	OpenFiles int64
	// StartTimeout bounds the time from the start to the first answer; the
	// default is 10 s.
	StartTimeout time.Duration
	// SwapTimeout is Options.SwapTimeout for this plugin.
	SwapTimeout time.Duration

	// isDefault is set if Memory is the default, which only the host enforces.
	isDefault bool
}

// readLimits returns the limits of a plugin in settings.plugins: its own, or else those
// of all plugins.
func readLimits(all map[string]any, plugin string) Limits {
	own, _ := all[plugin].(map[string]any)
	limit := func(key string) float64 { return cmp.Or(number(own[key]), number(all[key])) }
	seconds := func(key string) time.Duration { return time.Duration(limit(key) * float64(time.Second)) }
	return Limits{
		Memory: int64(limit("memory_mb") * (1 << 20)), CPU: limit("cpu"), OpenFiles: int64(limit("open_files")),
		StartTimeout: seconds("start_timeout_seconds"), SwapTimeout: seconds("swap_timeout_seconds"),
	}
}

func number(v any) float64 {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return 0
}

// or returns the higher limits of l and other. Workflows of one host share the process.
func (l Limits) or(other Limits) Limits {
	return Limits{
		Memory: max(l.Memory, other.Memory), CPU: max(l.CPU, other.CPU), OpenFiles: max(l.OpenFiles, other.OpenFiles),
		StartTimeout: max(l.StartTimeout, other.StartTimeout), SwapTimeout: max(l.SwapTimeout, other.SwapTimeout),
	}
}

// effective returns the limits of a process: the configured ones, else the limits of the
// manifest, else the defaults.
func (l Limits) effective(n needs, startTimeout time.Duration) Limits {
	l.StartTimeout = cmp.Or(l.StartTimeout, max(startTimeout, n.startTimeout))
	l.isDefault = l.Memory == 0
	l.Memory = cmp.Or(l.Memory, max(physicalMemory()/4*3, n.memory))
	return l
}

// goLimits adds the variables with which a Go program limits itself. For each configured
// limit they replace the host's variable.
func goLimits(set Limits, env []string) []string {
	with := func(name, text string) {
		env = append(slices.DeleteFunc(env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") }), name+"="+text)
	}
	if set.Memory > 0 {
		with("GOMEMLIMIT", strconv.FormatInt(set.Memory/10*9, 10))
	}
	if set.CPU > 0 {
		with("GOMAXPROCS", strconv.Itoa(int(math.Ceil(set.CPU))))
	}
	return env
}

const (
	// growth is the expected maximum growth of a process's memory in bytes per
	// second. It determines when the memory is checked again.
	growth = 1 << 30
	// maxCheckInterval is the maximum interval between two checks.
	maxCheckInterval = 2 * time.Second
)

// watchMemory kills the process when it uses more memory than its limit. The closer the
// memory is to the limit, the more often it is checked.
func (p *process) watchMemory() {
	limit := p.limits.Memory
	if limit == 0 {
		return
	}
	look := time.NewTimer(0)
	defer look.Stop()
	for {
		select {
		case <-p.runner.exited:
			return
		case <-look.C:
		}
		_, used := resident(int(p.runner.pid.Load()))
		if used > limit {
			p.killBecause(verdict{limit: true, reason: fmt.Sprintf(
				"it used %s of memory and was killed: its limit is %s (settings.plugins.%s.memory_mb)", megabytes(used), megabytes(limit), p.name)})
			return
		}
		wait := time.Duration(float64(limit-used) / growth * float64(time.Second))
		look.Reset(min(max(wait, shortestLook), maxCheckInterval))
	}
}

func megabytes(n int64) string { return fmt.Sprintf("%d MiB", (n+(1<<20)-1)>>20) }

// tooLate returns the reason why a plugin did not start in time.
func (p *process) tooLate(what string) string {
	return fmt.Sprintf("%s within %s (settings.plugins.%s.start_timeout_seconds)", what, p.limits.StartTimeout, p.name)
}

package subproc

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/breaker"
	"github.com/the-edge-agent/tea/sdk/x/filelock"
)

const (
	// statusSocket is the name of the socket, in a host's directory, on which the
	// host reports its status.
	statusSocket = "status"
	// statusTimeout bounds a report.
	statusTimeout = 2 * time.Second
)

// The states of a plugin in a host.
const (
	StateRunning  = "running"  // takes calls
	StateStarting = "starting" // calls wait for it
	StateIdle     = "idle"     // starts with its next call
	StateBroken   = "broken"   // crashed too often; not started for a while
)

// HostStatus is a running host and the plugins in it.
type HostStatus struct {
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	Plugins []Status  `json:"plugins"`
}

// Status is a plugin in a running host.
type Status struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Path    string `json:"path"`
	State   string `json:"state"`
	// PID is the process id; 0 if no process runs. Generation counts the
	// processes of the plugin from 1.
	PID        int        `json:"pid,omitempty"`
	Generation int        `json:"generation"`
	Started    *time.Time `json:"started,omitempty"`
	// Calls that have begun, including Running, and calls that have failed.
	Calls    int64    `json:"calls"`
	Failures int64    `json:"failures"`
	Crashes  int64    `json:"crashes"`
	Running  []string `json:"running,omitempty"`
	// RSSBytes is the resident memory; MemoryBytes is the part of it to which the
	// limit applies: without mapped files.
	RSSBytes    int64 `json:"rss_bytes,omitempty"`
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
	MemoryLimit int64 `json:"memory_limit,omitempty"`
	// LastCrash describes how the last process that was not stopped died, with its
	// last output.
	LastCrash string     `json:"last_crash,omitempty"`
	LastWords string     `json:"last_words,omitempty"`
	CrashedAt *time.Time `json:"crashed_at,omitempty"`
	// Refused is the reason why the plugin was not replaced by another version.
	Refused string `json:"refused,omitempty"`
}

// counters count the calls and crashes of a plugin.
type counters struct {
	calls, failures, crashes atomic.Int64
	last                     atomic.Pointer[crash]
}

// crash is the end of a process that was not stopped.
type crash struct {
	at         time.Time
	how, words string
}

// call counts a call and returns the function that counts its end.
func (c *counters) call() func(err error) {
	c.calls.Add(1)
	return func(err error) {
		if err != nil {
			c.failures.Add(1)
		}
	}
}

func (c *counters) crashed(p *process) {
	c.crashes.Add(1)
	c.last.Store(&crash{at: time.Now(), how: p.ending(), words: p.runner.output.lastOutput()})
}

// Status returns the plugins that were called, in the order in which they were found.
func (s *Plugins) Status() []Status {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]Status, 0, len(s.order))
	for _, name := range s.order {
		if p := s.plugins[name]; p.counters.calls.Load() > 0 {
			all = append(all, p.status())
		}
	}
	return all
}

func (s *supervisor) status() Status {
	if gen := s.running(); gen != nil && gen.process.dead() {
		s.retire(gen) // otherwise its end is noticed slightly later
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Status{
		Name: s.name, Version: s.executable.manifest.Version, Path: s.executable.binary.path, State: StateIdle, Generation: s.numbered,
		Calls: s.counters.calls.Load(), Failures: s.counters.failures.Load(), Crashes: s.counters.crashes.Load(),
	}
	if c := s.counters.last.Load(); c != nil {
		mask := s.launcher.options.Mask
		out.LastCrash, out.LastWords, out.CrashedAt = c.how, mask(c.words), &c.at
	}
	if s.refused != nil {
		out.Refused = s.launcher.options.Mask(fmt.Sprintf("%s: %s", strings.TrimSpace(s.refused.Path+" "+s.refused.Version), reason(s.refused.Err)))
	}
	switch {
	case s.current != nil:
		p := s.current.process
		out.State, out.PID, out.Started = StateRunning, int(p.runner.pid.Load()), &p.began
		out.RSSBytes, out.MemoryBytes = resident(out.PID)
		out.MemoryLimit = p.limits.Memory
		out.Running = p.unanswered.actions()
	case s.start != nil:
		out.State = StateStarting
	case s.breaker.State() == breaker.Open:
		out.State = StateBroken
	}
	return out
}

// reporter reports the status of a host on a socket in its directory.
type reporter struct {
	listener net.Listener
	done     sync.WaitGroup
}

// report starts a reporter. Every client that can connect gets the status; the directory
// is closed to other users.
func report(dir string, status func() []Status) (*reporter, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "unix", filepath.Join(dir, statusSocket))
	if err != nil {
		return nil, fmt.Errorf("open the socket for the status: %w", err)
	}
	r := &reporter{listener: l}
	host := HostStatus{PID: os.Getpid(), Started: time.Now()}
	r.done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // close does not wait, because status needs locks of its callers
				defer conn.Close()
				now := host
				now.Plugins = status()
				_ = conn.SetDeadline(time.Now().Add(statusTimeout))
				_ = json.NewEncoder(conn).Encode(now) // the other side has ended
			}()
		}
	})
	return r, nil
}

func (r *reporter) close() {
	if r != nil {
		_ = r.listener.Close()
		r.done.Wait()
	}
}

// Hosts returns the status of this user's running hosts that have started a plugin,
// oldest first.
func Hosts(ctx context.Context) []HostStatus {
	var hosts []HostStatus
	bases := runBases()
	slices.Sort(bases)
	for _, base := range slices.Compact(bases) {
		dirs, _ := filepath.Glob(filepath.Join(base, runDirPrefix+"*")) // the pattern is valid
		for _, dir := range dirs {
			if info, err := os.Lstat(dir); err != nil || !info.IsDir() || !filelock.Owned(info) {
				continue
			}
			if h, err := askStatus(ctx, dir); err == nil {
				hosts = append(hosts, h)
			}
		}
	}
	sort.Slice(hosts, func(i, j int) bool { return hosts[i].Started.Before(hosts[j].Started) })
	return hosts
}

// askStatus asks the host of a directory. A killed host does not answer.
func askStatus(ctx context.Context, dir string) (HostStatus, error) {
	var h HostStatus
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, statusSocket))
	if err != nil {
		return h, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(statusTimeout))
	return h, json.NewDecoder(conn).Decode(&h)
}

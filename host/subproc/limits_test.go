package subproc

import (
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// openLimited returns an instance of the crash plugin with settings.plugins.
func openLimited(t *testing.T, plugins string) *instance {
	t.Helper()
	set, problems := discover(t, Options{Dirs: []string{install(t, "crash")}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	set.Limit(limitsIn(t, plugins))
	return openIn(t, set, "crash")
}

func limitsIn(t *testing.T, plugins string) map[string]any {
	t.Helper()
	v, err := value.Decode([]byte(plugins))
	if err != nil {
		t.Fatal(err)
	}
	return v.(map[string]any)
}

func TestPluginThatUsesTooMuchMemoryIsStopped(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	if runtime.GOOS != "linux" {
		t.Skip("the memory of a process is known on Linux only")
	}
	inst := openLimited(t, `{"crash": {"memory_mb": 256}}`)
	pidOf(t, inst)
	proc := inst.supervisor.running().process
	_, err := call(t.Context(), inst, "crash.eat", map[string]any{"bytes": int64(4) << 30})
	e := atFault(t, err, tea.ResourceExhausted, "its limit is 256 MiB (settings.plugins.crash.memory_mb)")
	if e.Retryable {
		t.Error("the call would reach the limit again")
	}
	if rss := peakMemory(t, proc); rss > 1<<30 {
		t.Errorf("it used %s before it was stopped", megabytes(rss))
	}
	if _, err := call(t.Context(), inst, "crash.eat", map[string]any{"bytes": 64 << 20}); err != nil {
		t.Errorf("a call within the limit: %v", err)
	}
}

// peakMemory returns the largest resident size of a process that has ended.
func peakMemory(t *testing.T, p *process) int64 {
	t.Helper()
	<-p.runner.exited
	return maxRSS(p.runner.state.SysUsage())
}

func TestLimitsReachTheProcess(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("other systems cannot limit another process")
	}
	inst := openLimited(t, `{"open_files": 100, "memory_mb": 512, "crash": {"open_files": 64, "cpu": 0.5}}`)
	got, err := call(t.Context(), inst, "crash.limits", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"files": int64(64), "one processor": true, "GOMAXPROCS": int64(1), "GOMEMLIMIT": "483183819"}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}

func TestLimitsOfSeveralWorkflowsAreTheHighest(t *testing.T) {
	t.Parallel()
	l := &launcher{}
	for _, settings := range []string{`{"memory_mb": 10, "x": {"cpu": 2}}`, `{"cpu": 3, "y": {"memory_mb": 99}, "x": {"start_timeout_seconds": 1.5, "swap_timeout_seconds": 60}}`, `{}`, `{}`} {
		l.limit(limitsIn(t, settings))
	}
	if len(l.limits) != 3 {
		t.Errorf("equal settings are kept twice: %v", l.limits)
	}
	got := l.limitsOf("x")
	want := Limits{Memory: 10 << 20, CPU: 3, StartTimeout: 1500 * time.Millisecond, SwapTimeout: time.Minute}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	declared := Limits{}.effective(needs{startTimeout: time.Minute, memory: 1 << 50}, time.Second)
	if want := (Limits{Memory: 1 << 50, StartTimeout: time.Minute, isDefault: true}); declared != want {
		t.Errorf("got %+v, want what the manifest declares", declared)
	}
	if set := got.effective(needs{startTimeout: time.Minute, memory: 1 << 50}, time.Second); set.Memory != got.Memory || set.StartTimeout != got.StartTimeout {
		t.Errorf("got %+v, want what is set", set)
	}
}

func maxRSS(usage any) int64 {
	return int64(usage.(*syscall.Rusage).Maxrss) << 10 //nolint:unconvert // it has 32 bits on some systems
}

func TestLimitsApplyBeforeTheManifestIsKnown(t *testing.T) {
	t.Parallel()
	set, _ := discoverStored(t, Options{Dirs: []string{install(t, "mute")}})
	set.Limit(limitsIn(t, `{"mute": {"start_timeout_seconds": 0.1}}`))
	if err := set.Learn(t.Context()); err == nil || !strings.Contains(err.Error(), "no handshake within 100ms (settings.plugins.mute.start_timeout_seconds)") {
		t.Errorf("got %v", err)
	}
}

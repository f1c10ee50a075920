package subproc

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

func TestStatusOfARunningHost(t *testing.T) {
	peertest.Long(t, "it replaces processes again and again")
	t.Setenv("XDG_RUNTIME_DIR", shortDir(t))
	dir := install(t, "crash", "probe")
	set, _ := discover(t, Options{Dirs: []string{dir}})
	inst := openIn(t, set, "crash")
	pidOf(t, inst)
	_, err := call(t.Context(), inst, "crash.exit", nil)
	wantError(t, err, tea.PluginCrashed)
	pid := pidOf(t, inst)
	endlessCalls(t, inst, 2)

	hosts := thisHost(t)
	if len(hosts) != 1 || hosts[0].PID != os.Getpid() || hosts[0].Started.IsZero() {
		t.Fatalf("got %+v, want this host", hosts)
	}
	want := []Status{
		{
			Name: "crash", Version: "1.0.0", Path: dir + "/tea-plugin-crash", State: StateRunning, PID: int(pid), Generation: 2,
			Calls: 5, Failures: 1, Crashes: 1, Running: []string{"crash.stubborn"}, LastCrash: "exit status 7", LastWords: "out of cheese",
		},
	}
	rest := cmpopts.IgnoreFields(Status{}, "Started", "CrashedAt", "RSSBytes", "MemoryBytes", "MemoryLimit")
	if diff := cmp.Diff(want, hosts[0].Plugins, rest); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	running := hosts[0].Plugins[0]
	if running.Started == nil || running.CrashedAt == nil || running.RSSBytes < running.MemoryBytes || running.MemoryBytes < 1<<20 || running.MemoryLimit < running.MemoryBytes {
		t.Errorf("the times or the memory are missing: %+v", running)
	}
	if err := set.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if hosts := thisHost(t); len(hosts) != 0 {
		t.Errorf("a closed host reports %+v", hosts)
	}
}

// thisHost returns the status of the hosts in this process. Others can be
// running.
func thisHost(t *testing.T) []HostStatus {
	t.Helper()
	return slices.DeleteFunc(Hosts(t.Context()), func(h HostStatus) bool { return h.PID != os.Getpid() })
}

func TestStatusOfAPluginThatKeepsCrashing(t *testing.T) {
	t.Parallel()
	set, _ := discover(t, Options{Dirs: []string{install(t, "crash")}})
	inst := openIn(t, set, "crash")
	for range crashLimit {
		_, err := call(t.Context(), inst, "crash.panic", nil)
		wantError(t, err, tea.PluginCrashed)
	}
	got := set.Status()[0]
	if got.State != StateBroken || got.PID != 0 || got.Crashes != crashLimit || !strings.HasPrefix(got.LastWords, "panic: deep inside") {
		t.Errorf("got %+v", got)
	}
}

// shortDir returns a new directory whose path is short enough for sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "tea") //nolint:usetesting // the path of t.TempDir can be too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

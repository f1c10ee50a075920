package subproc

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/proctest"
)

// fakeHost runs the plugins in the directory that is its argument, prints
// their process ids and those of a child of each, and waits to be killed.
func fakeHost() {
	ctx := context.Background()
	set, _, err := find(ctx, Options{Dirs: os.Args[1:2], CacheDir: os.Args[2], Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		os.Exit(1)
	}
	if err := set.Learn(ctx); err != nil {
		os.Exit(1)
	}
	for _, b := range set.Bundles() {
		inst, err := set.open(b.Manifest.Name, nil)
		if err != nil {
			os.Exit(1)
		}
		got, err := call(ctx, inst, b.Manifest.Name+".not", nil)
		if err != nil {
			os.Exit(1)
		}
		fmt.Println(got.(map[string]any)["pid"])
		if got, err = call(ctx, inst, b.Manifest.Name+".child", nil); err != nil {
			os.Exit(1)
		}
		fmt.Println(got.(map[string]any)["pid"])
		if got, err = call(ctx, inst, b.Manifest.Name+".daemon", nil); err != nil {
			os.Exit(1)
		}
		fmt.Println(got.(map[string]any)["pid"])
		for _, more := range os.Args[3:] {
			if got, err = call(ctx, inst, b.Manifest.Name+"."+more, nil); err != nil {
				os.Exit(1)
			}
			fmt.Println(got.(map[string]any)["pid"])
		}
		go call(ctx, inst, b.Manifest.Name+".stubborn", nil)
	}
	fmt.Println("ready")
	block()
}

// startHost runs a fake host until it is ready and returns its plugins' ids.
func startHost(t *testing.T, runtimeDir string) (*exec.Cmd, []int) {
	t.Helper()
	return startHostWith(t, runtimeDir, nil)
}

// startHostWith also calls further actions that start a child.
func startHostWith(t *testing.T, runtimeDir string, attr *syscall.SysProcAttr, actions ...string) (*exec.Cmd, []int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host := &exec.Cmd{
		Path: self, Args: append([]string{"fake-host", install(t, "crash", "slowstart"), t.TempDir()}, actions...), SysProcAttr: attr,
		Env: append(os.Environ(), "XDG_RUNTIME_DIR="+runtimeDir), Stderr: t.Output(), WaitDelay: 10 * time.Second,
	}
	stdout, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		host.Process.Kill()
		host.Wait()
	})
	var pids []int
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if lines.Text() == "ready" {
			return host, pids
		}
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	t.Fatal("the host did not get ready")
	return nil, nil
}

// wantGone fails the test unless the processes end in time.
func wantGone(t *testing.T, pids ...int) {
	t.Helper()
	awaitGone(t, 20*time.Second, pids...)
}

func awaitGone(t *testing.T, limit time.Duration, pids ...int) {
	t.Helper()
	if left := proctest.Await(limit, pids...); len(left) > 0 {
		t.Fatalf("processes %v outlived their host by %s", left, limit)
	}
}

// A host that is killed while its plugins start, before and during their
// handshakes, leaves none of them either.
func TestHostKilledDuringAStartLeavesNoProcesses(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("processes are found by /proc")
	}
	for _, delay := range []int{1, 3, 6, 10, 20, 40, 80, 160} {
		t.Run(fmt.Sprint(delay), func(t *testing.T) {
			t.Parallel()
			runtimeDir, err := os.MkdirTemp("/tmp", "teaorphan") //nolint:usetesting // t.TempDir is too deep for a socket's path
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(runtimeDir) })
			dir := install(t, "crash", "slowstart", "mute")
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			host := &exec.Cmd{
				Path: self, Args: []string{"fake-host", dir, t.TempDir()},
				Env: append(os.Environ(), "XDG_RUNTIME_DIR="+runtimeDir), Stderr: t.Output(),
			}
			if err := host.Start(); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Duration(delay) * time.Millisecond)
			if err := host.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			host.Wait()
			wantGone(t, processesOf(t, dir)...)
			if left := processesOf(t, dir); len(left) > 0 {
				t.Errorf("%v were started after the host had died", left)
			}
		})
	}
}

// processesOf finds the processes whose program is in a directory.
func processesOf(t *testing.T, dir string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(line), dir) {
			continue // ended meanwhile, or another's
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && !proctest.Gone(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestKilledHostLeavesNoProcessesAndTheNextStartRemovesItsSockets(t *testing.T) {
	t.Parallel()
	runtimeDir, err := os.MkdirTemp("/tmp", "teaorphan") //nolint:usetesting // t.TempDir is too deep for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(runtimeDir) })
	host, pids := startHost(t, runtimeDir)
	if len(pids) != 6 {
		t.Fatalf("the host runs %d processes, want 2 plugins with two children each", len(pids))
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	host.Wait()
	wantGone(t, pids...)

	dirs := func() []string {
		found, err := filepath.Glob(filepath.Join(runtimeDir, runDirPrefix+"*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	left := dirs()
	if len(left) != 1 {
		t.Fatalf("the killed host left %v, want one directory", left)
	}
	startHost(t, runtimeDir)
	if now := dirs(); len(now) != 1 || now[0] == left[0] {
		t.Errorf("the next host did not clean up: %v", now)
	}
}

func TestCloseEndsChildrenAndStubbornCalls(t *testing.T) {
	t.Parallel()
	set, _ := discover(t, Options{Dirs: []string{install(t, "crash")}})
	inst := openIn(t, set, "crash")
	got, err := call(t.Context(), inst, "crash.child", nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := endlessCalls(t, inst, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := set.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	wantError(t, <-ended, tea.Canceled)
	wantGone(t, int(got.(map[string]any)["pid"].(int64)))
}

func TestChildrenOfACrashedPluginAreEnded(t *testing.T) {
	t.Parallel()
	inst, other := open(t, "crash"), open(t, "crash")
	start := func(inst *instance, action string) int {
		got, err := call(t.Context(), inst, action, nil)
		if err != nil {
			t.Fatal(err)
		}
		return int(got.(map[string]any)["pid"].(int64))
	}
	children := []int{start(inst, "crash.child"), start(inst, "crash.daemon")}
	stays := start(other, "crash.daemon")
	if _, err := call(t.Context(), inst, "crash.kill", nil); tea.AsError(err).Type != tea.PluginCrashed {
		t.Fatalf("got %v, want a crash", err)
	}
	wantGone(t, children...)
	if proctest.Gone(stays) {
		t.Error("the child of another plugin was killed too")
	}
}

package subproc

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
	"github.com/the-edge-agent/tea/sdk/x/proctest"
)

// fakeSwapHost replaces a plugin again and again while it calls it, until it is
// killed. Its arguments are the directories of the plugins, of the cache, and
// of the plugin's folder.
func fakeSwapHost() {
	ctx := context.Background()
	set, _, err := find(ctx, Options{Dirs: os.Args[1:2], CacheDir: os.Args[2], Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		os.Exit(1)
	}
	if err := set.Learn(ctx); err != nil {
		os.Exit(1)
	}
	inst, err := set.open("swap", tea.Settings{"swap": fmt.Appendf(nil, `{"path": %q}`, os.Args[3])})
	if err != nil {
		os.Exit(1)
	}
	host := &swapHost{inst: inst}
	if _, err := host.ask(ctx, "swap.note", ""); err != nil {
		os.Exit(1)
	}
	go func() {
		for {
			_, _ = host.ask(ctx, "swap.note", "")
		}
	}()
	path := filepath.Join(os.Args[1], "tea-plugin-swap")
	script, err := os.ReadFile(path)
	if err != nil {
		os.Exit(1)
	}
	for n := 0; ; n++ {
		if os.WriteFile(path+".new", fmt.Appendf(script, "# %d\n", n), 0o700) != nil || os.Rename(path+".new", path) != nil {
			os.Exit(1)
		}
		fmt.Println("swap")
		if _, err := set.Reload(ctx); err != nil {
			os.Exit(1)
		}
	}
}

// swapProcesses finds the processes of a fake plugin by its directory.
func swapProcesses(t *testing.T, dir string) (pids []int) {
	t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		line, _ := os.ReadFile(filepath.Join(entry, "cmdline")) // it can have ended
		env, _ := os.ReadFile(filepath.Join(entry, "environ"))
		pid, err := strconv.Atoi(filepath.Base(entry))
		if err == nil && pid != os.Getpid() && bytes.Contains(append(line, env...), []byte(dir)) && !proctest.Gone(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestHostKilledDuringASwapLeavesNoProcesses(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it replaces processes again and again")
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("processes are found by /proc")
	}
	kills := 8
	if fullSwaps {
		kills = 100
	}
	runtimeDir, err := os.MkdirTemp("/tmp", "teaswap") //nolint:usetesting // t.TempDir is too deep for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(runtimeDir) })
	for n := range kills {
		dir, folder := t.TempDir(), t.TempDir()
		traits := []string{dir} // marks the processes
		if n%2 == 0 {
			traits = append(traits, "exclusive")
		}
		replace(t, dir, "1.0.0", traits...)
		host := &exec.Cmd{
			Path: must(os.Executable()), Args: []string{"fake-swap-host", dir, t.TempDir(), folder},
			Env: append(os.Environ(), "XDG_RUNTIME_DIR="+runtimeDir), Stderr: t.Output(),
		}
		stdout, err := host.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := host.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(stdout)
		for range n%3 + 1 { // the first swap, or a later one
			if !lines.Scan() {
				t.Fatal("the host does not swap")
			}
		}
		<-time.After(time.Duration(n*150/kills) * time.Millisecond) // a swap takes that long
		if err := host.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		host.Wait()
		wantGone(t, swapProcesses(t, dir)...)
		if left := swapProcesses(t, dir); len(left) > 0 {
			t.Errorf("%v were started after the host had died", left)
		}
		set, _ := discover(t, Options{Dirs: []string{dir}})
		swapHostIn(t, set, folder).wantVersion(t, "1.0.0")
	}
}

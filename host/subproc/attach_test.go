package subproc

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/conform"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
	"github.com/the-edge-agent/tea/sdk/x/wire"
)

// startDebugged runs a plugin as a debugger does and returns its handshake.
func startDebugged(t *testing.T, dir, name string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, prefix+name))
	cmd.Env = append(os.Environ(), wire.CookieKey+"="+wire.CookieValue, "PLUGIN_UNIX_SOCKET_DIR="+t.TempDir())
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return cmd, strings.TrimSpace(line)
}

// The suite of the protocol passes on a plugin that a debugger runs. It ends
// with the host.
func TestReattachedPluginConforms(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	dir := install(t, "probe")
	for _, address := range []func(line string) string{
		func(line string) string { return line },
		func(line string) string { return strings.Split(line, "|")[3] },
		func(line string) string { return filepath.Dir(strings.Split(line, "|")[3]) },
	} {
		cmd, line := startDebugged(t, dir, "probe")
		set, problems, err := find(t.Context(), Options{Dirs: []string{dir}, CacheDir: t.TempDir(), Reattach: "probe=" + address(line)})
		if err != nil || len(problems) > 0 {
			t.Fatal(err, problems)
		}
		if err := set.Learn(t.Context()); err != nil {
			t.Fatal(err)
		}
		err = conform.Suite{}.Run(t.Context(), target{t, set}, func(r conform.Result) {
			if r.Status == conform.Failed {
				t.Errorf("%s: %s %s", r.Check, r.Status, r.Detail)
			}
		})
		if err != nil {
			t.Error(err)
		}
		if err := set.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
	}
}

// The end of the process is a crash with its reason.
func TestReattachedPluginEnds(t *testing.T) {
	t.Parallel()
	dir := install(t, "crash")
	_, line := startDebugged(t, dir, "crash")
	set, _ := discover(t, Options{Dirs: []string{dir}, Reattach: "crash=" + line})
	inst := openIn(t, set, "crash")
	_, err := call(t.Context(), inst, "crash.exit", nil)
	wantError(t, err, tea.PluginCrashed, "has closed the connection", "TEA_REATTACH")
}

func TestReattachMistakes(t *testing.T) {
	t.Parallel()
	dir := install(t, "probe")
	_, problems := discoverStored(t, Options{Dirs: []string{dir}, Reattach: "prob=/tmp/x, nothing"})
	var got []string
	for _, p := range problems {
		got = append(got, p.Error())
	}
	want := []string{
		`TEA_REATTACH: plugin "prob" not found; name the directory of its binary with --plugins`,
		`TEA_REATTACH: expected NAME=SOCKET, got " nothing"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	set, _ := discover(t, Options{Dirs: []string{dir}, Reattach: "probe=/nowhere/socket"})
	_, err := call(t.Context(), openIn(t, set, "probe"), "probe.echo", nil)
	wantError(t, err, tea.DependencyMissing, "no plugin listens on /nowhere/socket")
}

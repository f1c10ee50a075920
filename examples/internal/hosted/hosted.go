// Package hosted tests the plugins in other languages: with the conformance suite, and under a host for behaviour that
// the suite cannot check. Start with [Suite].
package hosted

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/subproc"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// Suite runs the conformance suite on the program with the probe actions and on
// other programs, and tests the former under a host.
func Suite(t *testing.T, probe string, programs ...string) {
	t.Helper()
	for _, program := range append(programs, probe) {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			teatest.Binary(t, program)
		})
	}
	t.Run("supervised", func(t *testing.T) {
		t.Parallel()
		supervised(t, probe)
	})
	t.Run("handover", func(t *testing.T) {
		t.Parallel()
		handover(t, probe)
	})
}

// Run runs a command, which must succeed.
func Run(t *testing.T, command ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
}

// Copy returns a copy of the project in the working directory, with links to
// its installed dependencies and generated files.
func Copy(t *testing.T, installed ...string) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "-co", "--exclude-standard").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range strings.Fields(string(out)) {
		install(t, file, filepath.Join(dir, file))
	}
	for _, name := range installed {
		source, err := filepath.Abs(name)
		if err == nil {
			err = os.Symlink(source, filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// install copies a file with its mode.
func install(t *testing.T, source, target string) {
	t.Helper()
	data, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(source)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(target), 0o755)
	}
	if err == nil {
		err = os.WriteFile(target, data, info.Mode())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// discover finds the plugins in a directory.
func discover(t *testing.T, dir, cache string) *subproc.Plugins {
	t.Helper()
	plugins, problems, err := subproc.Discover(t.Context(), subproc.Options{Dirs: []string{dir}, CacheDir: cache, StartTimeout: time.Minute})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	t.Cleanup(func() { _ = plugins.Close() })
	return plugins
}

// refresh stores the manifests of the plugins.
func refresh(t *testing.T, plugins *subproc.Plugins) {
	t.Helper()
	for _, asked := range plugins.Refresh(t.Context(), false) {
		if asked.Err != nil {
			t.Fatal(asked.Err)
		}
	}
}

// Stale tests that a change of a file of the greeter, other than its program,
// makes the stored manifest stale, and that a running host replaces the plugin.
func Stale(t *testing.T, dir, source string) {
	t.Helper()
	cache := t.TempDir()
	refresh(t, discover(t, dir, cache))
	running := discover(t, dir, cache)
	if unread := running.Unread(); len(unread) > 0 {
		t.Fatalf("the manifest of %v is not stored", unread)
	}
	greeter := open(t, running, "greeter")
	if got := hello(t, greeter); got != "Hello, Ada!" {
		t.Fatalf("greeter.hello: %s", got)
	}
	// The string templates of both languages.
	greeting := strings.NewReplacer("Hello, {", "Ahoy, {", "Hello, ${", "Ahoy, ${")
	path := filepath.Join(dir, source)
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(greeting.Replace(string(text))), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if unread := discover(t, dir, cache).Unread(); !slices.Equal(unread, []string{"greeter"}) {
		t.Errorf("unread after a change of %s: %v, want greeter", source, unread)
	}
	swaps, err := running.Reload(t.Context())
	if err != nil || len(swaps) != 1 || swaps[0].Err != nil {
		t.Fatalf("reload after a change of %s: %+v, %v", source, swaps, err)
	}
	if got := hello(t, greeter); got != "Ahoy, Ada!" {
		t.Errorf("greeter.hello after the reload: %s", got)
	}
}

func open(t *testing.T, plugins *subproc.Plugins, name string) host.Invoker {
	t.Helper()
	inst, err := plugins.Open(t.Context(), name, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inst.Close() })
	return inst
}

func hello(t *testing.T, greeter host.Invoker) string {
	t.Helper()
	got, err := call(t.Context(), greeter, "greeter.hello", map[string]any{"name": "Ada"}, &teatest.Host{})
	if err != nil {
		t.Fatal(err)
	}
	return got.(map[string]any)["text"].(string)
}

func call(ctx context.Context, inst host.Invoker, action string, params map[string]any, h tea.Host) (any, error) {
	resp, err := inst.Invoke(ctx, &tea.Request{Action: action, Params: tea.ValuePayload(params), Call: tea.Call{Attempt: 1}, Host: h})
	if err != nil {
		return nil, err
	}
	return resp.Result.Value()
}

// begun is a host that signals the first token.
type begun struct {
	teatest.Host
	token chan struct{}
}

func (b *begun) Token(ctx context.Context, text string) {
	b.Host.Token(ctx, text)
	b.token <- struct{}{}
}

// supervised tests the program with the probe actions: a call that ends at its deadline keeps its process, and a
// process that dies is restarted.
func supervised(t *testing.T, program string) {
	t.Helper()
	dir := t.TempDir()
	absolute, err := filepath.Abs(program)
	if err == nil {
		err = os.Symlink(absolute, filepath.Join(dir, "tea-plugin-probe"))
	}
	if err != nil {
		t.Fatal(err)
	}
	plugins := discover(t, dir, t.TempDir())
	if err := plugins.Learn(t.Context()); err != nil {
		t.Fatal(err)
	}
	probe := open(t, plugins, "probe")
	echo(t, probe) // starts the process
	wait := &begun{token: make(chan struct{}, 1)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = call(ctx, probe, "probe.wait", nil, wait)
	if e := tea.AsError(err); e == nil || e.Type != tea.Timeout || strings.Contains(e.Message, "killed") {
		t.Errorf("a call that has ended at its deadline: %v, want a timeout", err)
	}
	pid := plugins.Status()[0].PID
	if echo(t, probe); plugins.Status()[0].PID != pid {
		t.Error("the plugin was restarted after a call that had ended at its deadline")
	}

	ended := make(chan error, 1)
	wait = &begun{token: make(chan struct{}, 1)}
	go func() {
		_, err := call(t.Context(), probe, "probe.wait", nil, wait)
		ended <- err
	}()
	<-wait.token
	if process, err := os.FindProcess(pid); err != nil || process.Kill() != nil {
		t.Fatal("cannot kill the plugin")
	}
	if e := tea.AsError(<-ended); e == nil || e.Type != tea.PluginCrashed {
		t.Errorf("a call of a plugin that was killed: %v, want plugin_crashed", e)
	}
	echo(t, probe)
}

// handover tests that a value in the memory of the program with the probe
// actions moves to the next version of the plugin.
func handover(t *testing.T, program string) {
	t.Helper()
	absolute, err := filepath.Abs(program)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	version := func(comment string) {
		next := filepath.Join(dir, "next")
		if err := os.WriteFile(next, []byte("#!/bin/sh\n# "+comment+"\nexec "+absolute+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, filepath.Join(dir, "tea-plugin-probe")); err != nil {
			t.Fatal(err)
		}
	}
	version("old")
	plugins := discover(t, dir, t.TempDir())
	if err := plugins.Learn(t.Context()); err != nil {
		t.Fatal(err)
	}
	probe := open(t, plugins, "probe")
	if got := keep(t, probe, "state"); got != nil {
		t.Fatalf("kept at the start: %v", got)
	}
	version("new")
	if swaps, err := plugins.Reload(t.Context()); err != nil || len(swaps) != 1 || swaps[0].Err != nil {
		t.Fatalf("reload: %+v, %v", swaps, err)
	}
	if got := keep(t, probe, "later"); got != "state" {
		t.Errorf("kept by the new version: %v, want the value of the old one", got)
	}
}

func keep(t *testing.T, probe host.Invoker, value string) any {
	t.Helper()
	got, err := call(t.Context(), probe, "probe.keep", map[string]any{"value": value}, &teatest.Host{})
	if err != nil {
		t.Fatal(err)
	}
	return got.(map[string]any)["before"]
}

func echo(t *testing.T, probe host.Invoker) {
	t.Helper()
	if _, err := call(t.Context(), probe, "probe.echo", map[string]any{}, &teatest.Host{}); err != nil {
		t.Fatal(err)
	}
}

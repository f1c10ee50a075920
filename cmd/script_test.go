package teacmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/serve"
	"github.com/the-edge-agent/tea/sdk/value"
)

// TestMain makes the test binary the command tea as well.
func TestMain(m *testing.M) {
	// The race detector sleeps a second before a process ends.
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	testscript.Main(m, map[string]func(){
		"tea": func() { os.Exit(Main(Options{})) }, "tea-plugin-greet": greet, "tea-with-memory": memory, "mistaken": renamedPlugin, "tea-plugin-bad": bad, "counter-plugin": counter, "radio-plugin": radio,
	})
}

type greetParams struct {
	Name string `json:"name"`
}

type greetSettings struct {
	Warmth float64 `json:"warmth,omitempty" maximum:"1"`
	Key    string  `json:"key,omitempty" secret:"true"`
	File   string  `json:"file,omitempty" format:"path"`
}

// spell streams a text in small pieces, logs it and returns the settings. It
// fails where the text ends in "!".
func spell(ctx context.Context, req *tea.Request, p greetParams) (greetSettings, error) {
	for text := p.Name; text != ""; {
		n := min(len(text), 5)
		req.Host.Token(ctx, text[:n])
		text = text[n:]
	}
	settings, _ := req.Instance.(*greetSettings)
	fmt.Fprintln(os.Stderr, "spelled", p.Name, "with", settings.Key)
	req.Host.Log(ctx, slog.LevelInfo, "spelled "+p.Name, map[string]any{"key": settings.Key})
	if strings.HasSuffix(p.Name, "!") {
		return greetSettings{}, tea.Errorf(tea.QueryError, "cannot spell %q with %s", p.Name, settings.Key)
	}
	return *settings, nil
}

// greet is a plugin that greets, token by token, and one that crashes.
func greet() {
	hello := func(ctx context.Context, req *tea.Request, p greetParams) (map[string]any, error) {
		req.Host.Token(ctx, "Hello, ")
		req.Host.Token(ctx, p.Name)
		return map[string]any{"text": cmp.Or(os.Getenv("GREETING"), "Hello, ") + p.Name, "usage": map[string]any{"total_tokens": 2}}, nil
	}
	crash := func(context.Context, *tea.Request, struct{}) (map[string]any, error) {
		fmt.Fprintln(os.Stderr, "out of tea, the key was hunter2")
		os.Exit(3)
		return nil, nil
	}
	// falter dies in the middle of its text unless the file exists, and makes it.
	falter := func(ctx context.Context, req *tea.Request, p greetParams) (map[string]any, error) {
		req.Host.Token(ctx, "Hello")
		if f, err := os.OpenFile(p.Name, os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			req.Host.Token(ctx, ", my")
			f.Close()
			os.Exit(3)
		}
		req.Host.Token(ctx, ", my friend")
		return map[string]any{"text": "Hello, my friend"}, nil
	}
	settings := map[string]*schema.Schema{"greet": schema.Of[greetSettings]()}
	open := func(_ context.Context, from tea.Settings) (any, error) {
		s := new(greetSettings)
		return s, from.Decode("greet", s)
	}
	serve.Main(tea.Bundle{Name: "greet", Version: "1.2.3", Description: "Greets.", Settings: settings, Open: open, Actions: []tea.Action{
		tea.NewAction("greet.spell", "Spells.", spell, tea.Streaming()),
		tea.NewAction("greet.hello", "Says hello.", hello, tea.Streaming()),
		tea.NewAction("greet.falter", "Crashes once in the middle.", falter, tea.Streaming(), tea.Idempotent()),
		tea.NewAction("greet.crash", "Crashes.", crash),
	}})
}

// counter is a plugin behind scripts, which name its major version.
func counter() {
	version := os.Args[1]
	answer := func(context.Context, *tea.Request, struct{}) (map[string]any, error) {
		return map[string]any{"version": json.Number(version)}, nil
	}
	serve.Main(tea.Bundle{Name: "counter", Version: version + ".0.0", Files: []string{"impl.sh"}, Actions: []tea.Action{
		tea.NewAction("counter.version", "Returns the version.", answer),
	}})
}

// memory is tea with a memory whose archives have the result in RESULT.
func memory() {
	archive := func(context.Context, *tea.Request, map[string]any) (any, error) {
		return value.Decode([]byte(os.Getenv("RESULT")))
	}
	inspect := func(context.Context, *tea.Request, map[string]any) (any, error) {
		return map[string]any{"path": "/memory", "state": cmp.Or(os.Getenv("STATE"), "ok")}, nil
	}
	os.Exit(Main(Options{Bundles: []*tea.Bundle{{Name: "memory", Version: "1.0.0", Settings: map[string]*schema.Schema{"memory": schema.Of[map[string]any]()}, Actions: []tea.Action{
		tea.NewAction("memory.export", "Exports.", archive), tea.NewAction("memory.import", "Imports.", archive), tea.NewAction("memory.backup", "Backs up.", archive),
		tea.NewAction("memory.inspect", "Inspects.", inspect),
	}}}}))
}

// renamedPlugin is greet under another name, which does nothing without a host.
func renamedPlugin() {
	if os.Getenv("TEA_PLUGIN_COOKIE") != "" {
		greet()
	}
}

// TestScripts runs the end-to-end cases of test/script.
func TestScripts(t *testing.T) {
	t.Parallel()
	// Stored next to the binary, the manifest is known in each script's home.
	refresh := exec.CommandContext(t.Context(), "tea", "plugin", "refresh", "--beside", "--plugins", pluginDir(t))
	refresh.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_CACHE_HOME=", "XDG_DATA_HOME=")
	if out, err := refresh.CombinedOutput(); err != nil {
		t.Fatalf("store the manifest: %v\n%s", err, out)
	}
	toolchain, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	of := strings.Fields(string(toolchain))
	source, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "test", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars,
				"PLUGINS="+pluginDir(t), "HOME="+env.WorkDir+"/home",
				"GOCACHE="+of[0], "GOMODCACHE="+of[1], "GOPROXY="+of[2], "SOURCE="+source,
				"LANG=C.UTF-8", "TERM=xterm", "TZ=UTC", "GORACE="+os.Getenv("GORACE"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// pluginDir is the directory with the command tea and the plugin greet.
func pluginDir(t *testing.T) string {
	t.Helper()
	binary, err := exec.LookPath("tea")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(binary)
}

// exits runs a command that must end with an exit code: exits CODE COMMAND...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code command [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("run %s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("%v exits with %d, want %d", args[1:], got, want)
	}
}

// workdir makes a directory with files.
func workdir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

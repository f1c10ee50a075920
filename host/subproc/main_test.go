package subproc

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// The test binary is also every fake plugin and a host to be killed: which
// one, its name says (see install).
func TestMain(m *testing.M) {
	name := filepath.Base(os.Args[0])
	if script := os.Getenv(scriptVariable); script != "" {
		name = script
	}
	if fake, ok := fakes[name]; ok {
		fake()
		os.Exit(0)
	}
	if err := flag.Set("test.parallel", "6"); err != nil { // the tests wait for processes, and need little of the processor
		panic(err)
	}
	syscall.Umask(0o022) // a directory that a group can write to is not trusted
	goleak.VerifyTestMain(m)
}

// install puts fake plugins into a new directory.
func install(t testing.TB, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.Symlink(self, filepath.Join(dir, prefix+name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// discover returns a set of fake plugins, all of them asked for their
// manifests, that is closed with the test.
func discover(t testing.TB, o Options) (*Plugins, []Problem) {
	t.Helper()
	set, problems := discoverStored(t, o)
	if joined, ok := set.Learn(t.Context()).(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			var p Problem
			if errors.As(err, &p) {
				problems = append(problems, p)
			}
		}
	}
	return set, problems
}

// discoverStored returns a set that knows the stored manifests only.
func discoverStored(t testing.TB, o Options) (*Plugins, []Problem) {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if o.CacheDir == "" {
		o.CacheDir = t.TempDir()
	}
	o.StartTimeout = cmp.Or(o.StartTimeout, time.Minute) // on a busy machine
	set, problems, err := find(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := set.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return set, problems
}

// open returns an instance of one fake plugin.
func open(t testing.TB, name string) *instance {
	t.Helper()
	set, problems := discover(t, Options{Dirs: []string{install(t, name)}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return openIn(t, set, name)
}

func openIn(t testing.TB, set *Plugins, name string) *instance {
	t.Helper()
	inst, err := set.open(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return inst
}

// call invokes an action with an empty host.
func call(ctx context.Context, inst *instance, action string, params map[string]any) (any, error) {
	resp, err := inst.Invoke(ctx, &tea.Request{Action: action, Params: tea.ValuePayload(params), Call: tea.Call{Attempt: 1}, Host: &teatest.Host{}})
	if err != nil {
		return nil, err
	}
	return resp.Result.Value()
}

var discardLogger = slog.New(slog.DiscardHandler)

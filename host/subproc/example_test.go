package subproc_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/subproc"
	tea "github.com/the-edge-agent/tea/sdk"
)

// A program that runs workflows with the plugins in a directory, which has one
// with the action greeter.greet.
func Example() {
	dir, err := installGreeter()
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()

	plugins, problems, err := subproc.Discover(ctx, subproc.Options{Dirs: []string{dir}, CacheDir: filepath.Join(dir, "cache")})
	if err != nil {
		panic(err)
	}
	for _, p := range problems {
		fmt.Fprintln(os.Stderr, p) // the other plugins are there all the same
	}
	h, err := host.New(host.Options{Plugins: plugins})
	if err != nil {
		panic(err)
	}
	defer h.Close() // ends the plugins

	wf, err := h.Parse("greet.yaml", []byte(`
nodes:
  - name: greet
    uses: greeter.greet
    with: {name: "{{ state.who }}"}
`), host.LoadOptions{})
	if err != nil {
		panic(err)
	}
	defer wf.Close()
	res, err := wf.Run(ctx, host.RunOptions{Input: map[string]any{"who": "Ada"}})
	if err != nil {
		panic(err)
	}
	fmt.Println(res.State["text"])
	// Output: Hello Ada
}

// installGreeter makes a plugin directory in which this test's own binary is
// the plugin.
func installGreeter() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "plugins"); err != nil {
		return "", err
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return dir, os.Symlink(self, filepath.Join(dir, "tea-plugin-greeter"))
}

func TestMissingPluginIsAnError(t *testing.T) {
	t.Parallel()
	plugins, _, err := subproc.Discover(t.Context(), subproc.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer plugins.Close()
	inst, err := plugins.Open(t.Context(), "nowhere", nil)
	var e *tea.Error
	if inst != nil || !errors.As(err, &e) || e.Type != tea.NotFound {
		t.Errorf("got %v and %v, want not_found", inst, err)
	}
	if err := plugins.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

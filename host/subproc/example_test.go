package subproc_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/subproc"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/serve"
)

type params struct {
	Name string `json:"name" doc:"who is greeted"`
}

func greet(_ context.Context, _ *tea.Request, p params) (map[string]string, error) {
	return map[string]string{"text": "Hello " + p.Name}, nil
}

// A program that runs workflows with the plugins in a directory.
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

// greeter is the plugin; as a separate program it is the complete main.
func greeter() {
	serve.Main(tea.Bundle{Name: "greeter", Version: "1.0.0", Actions: []tea.Action{
		tea.NewAction("greeter.greet", "Greets somebody.", greet, tea.Idempotent()),
	}})
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

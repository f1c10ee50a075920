package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/subproc"
)

// remembering is a workflow that stores and reads entries of 1 KB.
const remembering = `
settings: {memory: {engine: %s, path: %q}, lua: {timeout_seconds: 600}}
nodes:
  - name: many
    run: |
      for i = 1, state.calls do
        local key = state.run .. "/" .. i
        %s
      end
`

// BenchmarkRemember is what an action of the memory costs where users call it:
// in a node, through the engine and a plugin process.
func BenchmarkRemember(b *testing.B) {
	dir := b.TempDir()
	build := exec.CommandContext(b.Context(), "go", "build", "-o", filepath.Join(dir, "tea-plugin-memory"), "../plugins/memory/cmd/tea-plugin-memory")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build the plugin: %v\n%s", err, out)
	}
	plugins, problems, err := subproc.Discover(b.Context(), subproc.Options{Dirs: []string{dir}, CacheDir: filepath.Join(b.TempDir(), "manifests")})
	if err != nil || len(problems) > 0 {
		b.Fatal(err, problems)
	}
	if err := plugins.Learn(b.Context()); err != nil {
		b.Fatal(err)
	}
	h, err := host.New(host.Options{Plugins: plugins})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { h.Close() })
	for _, engine := range []string{"sqlite", "duckdb"} {
		memory := b.TempDir()
		for _, action := range []struct{ name, code string }{
			{"store", `tea.action("ltm.store", {key = key, value = string.rep("0123456789abcde ", 60)})`},
			{"retrieve", `tea.action("ltm.retrieve", {key = key})`},
		} {
			b.Run(engine+"/"+action.name, func(b *testing.B) {
				wf := parse(b, h, fmt.Sprintf(remembering, engine, memory, action.code))
				const calls = 100
				for i := 0; b.Loop(); i++ {
					runOnce(b, wf, host.RunOptions{Input: map[string]any{"calls": calls, "run": i}})
				}
				perUnit(b, calls, "ns/call")
			})
		}
	}
}

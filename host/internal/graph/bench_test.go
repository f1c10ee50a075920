package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/script"
	"github.com/the-edge-agent/tea/host/internal/spec"
)

// BenchmarkCompile shows how compiling grows with nodes and with branches.
func BenchmarkCompile(b *testing.B) {
	for _, size := range []struct{ nodes, branches int }{{10, 0}, {10_000, 0}, {1000, 10}, {1000, 1000}} {
		var text strings.Builder
		text.WriteString("nodes:\n  - name: start\n")
		for i := range size.nodes {
			fmt.Fprintf(&text, "  - {name: n%d, run: \"return {k%d = state.x}\"}\n", i, i)
		}
		text.WriteString("  - name: join\n")
		if size.branches > 0 {
			text.WriteString("edges:\n  - {from: start, parallel: [")
			for i := range size.branches {
				fmt.Fprintf(&text, "n%d, ", i*size.nodes/size.branches)
			}
			text.WriteString("], fan_in: join}\n")
		}
		wf, diags := spec.Parse("flow.yaml", []byte(text.String()), spec.Options{})
		if len(diags) > 0 {
			b.Fatal(diags)
		}
		b.Run(fmt.Sprintf("nodes=%d/branches=%d", size.nodes, size.branches), func(b *testing.B) {
			lua := script.New(script.Options{})
			b.ReportAllocs()
			for b.Loop() {
				if g, diags := graph.Compile(wf, graph.Env{Lua: lua, Actions: catalog()}); g == nil {
					b.Fatal(diags)
				}
			}
		})
	}
}

package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestExample calls the tools of examples/mcp-server.
func TestExample(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	if err := os.CopyFS(p.dir, os.DirFS("../../examples/mcp-server/workflows")); err != nil {
		t.Fatal(err)
	}
	var asked []string
	c := p.start(answering(&asked, accept(map[string]any{"answer": "order"})), "")
	out := c.call("readings", map[string]any{"csv": "sensor,celsius\nm1,20\nm1,90\n"})
	if diff := cmp.Diff([]any{"m1"}, out.State["hot"]); diff != "" {
		t.Errorf("hot sensors (-want +got):\n%s\n%s", diff, out.text)
	}
	if out := c.call("order", map[string]any{"part": "bearing 6204", "count": 4}); out.State["placed"] != true {
		t.Errorf("order: %s", out.text)
	}
	if diff := cmp.Diff([]string{"Order 4 x bearing 6204?"}, asked); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
}

package host_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host"
)

func TestWorkflowDescribesItself(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"flow.yaml": `
description: Describes.
state_schema:
  given: {type: str, required: true}
  begun: {type: float, required: true}
  set: {type: bool, default: true, description: whether}
  all: any
initial_state: {begun: 1, other: [1]}
imports: [{path: lib/m.lua, namespace: m}]
nodes: [{name: n, subgraph: sub/inner.yaml}, {name: again, subgraph: sub/inner.yaml}]
`,
		"over.yaml":      "version: \"2\"\n",
		"lib/m.lua":      "return {register_actions = function(r) end}",
		"sub/inner.yaml": "imports: [{path: k.lua, namespace: k}]\nnodes: [{name: x}]\n",
		"sub/k.lua":      "return {register_actions = function(r) end}",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h, err := host.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	wf, err := h.Load(filepath.Join(dir, "flow.yaml"), host.LoadOptions{Overlays: []string{filepath.Join(dir, "over.yaml")}})
	if err != nil {
		t.Fatal(err)
	}
	defer wf.Close()
	var want []string
	for _, name := range []string{"flow.yaml", "over.yaml", "lib/m.lua", "sub/inner.yaml", "sub/k.lua"} {
		want = append(want, filepath.Join(dir, name))
	}
	if diff := cmp.Diff(want, wf.Files()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if wf.Description() != "Describes." {
		t.Errorf("description: %q", wf.Description())
	}
	schema := map[string]any{
		"type":     "object",
		"required": []any{"given"},
		"properties": map[string]any{
			"given": map[string]any{"type": "string"},
			"begun": map[string]any{"type": "number", "default": int64(1)},
			"set":   map[string]any{"type": "boolean", "default": true, "description": "whether"},
			"all":   map[string]any{},
			"other": map[string]any{"default": []any{int64(1)}},
		},
	}
	if diff := cmp.Diff(schema, wf.InputSchema()); diff != "" {
		t.Errorf("input schema (-want +got):\n%s", diff)
	}
}

package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

func TestWorkflowRunStaysBelowTheCallersDirectory(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "out.yaml")
	if err := os.WriteFile(outside, []byte("nodes: [{name: a}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	const call = `nodes: [{name: call, uses: workflow.run, with: {path: "{{ state.path }}"}, output: r}]`
	contents := map[string]string{
		"main.yaml":       `nodes: [{name: go, goto: [{if: "state.how == 'call'", to: call}, {to: inner}]}, {name: call, subgraph: call.yaml, goto: END}, {name: inner, subgraph: inner/call.yaml}]`,
		"call.yaml":       call,
		"far.yaml":        "nodes: [{name: a}]",
		"inner/call.yaml": call,
		"inner/near.yaml": "nodes: [{name: a}]",
		"inner/both.yaml": "nodes: [{name: a, subgraph: ../far.yaml}]",
	}
	s := files(t, contents)
	if err := os.Symlink(outside, filepath.Join(filepath.Dir(s.dir), "link.yaml")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ how, path, fault, kind string }{
		{"call", "./far.yaml", "", ""},
		{"call", "inner/near.yaml", "", ""},
		{"call", outside, "is absolute", "permission_denied"},
		{"call", "../out.yaml", "contains ..", "permission_denied"},
		{"call", "inner/%2e%2e/far.yaml", "contains ..", "permission_denied"},
		{"call", "file:far.yaml", "begins with a protocol", "permission_denied"},
		{"call", "link.yaml", "leads out of the root", "permission_denied"},
		{"call", "none.yaml", "there is no such file", "not_found"},
		{"call", "inner", "it is a directory", "validation_error"},
		{"call", "", "the path is empty", "validation_error"},
		// The directory is the calling workflow's.
		{"inner", "near.yaml", "", ""},
		{"inner", "inner/near.yaml", "there is no such file", "not_found"},
		{"inner", "../far.yaml", "contains ..", "permission_denied"},
		// What its author has written may refer to any file.
		{"inner", "both.yaml", "", ""},
	} {
		res, err := s.wf.Run(t.Context(), host.RunOptions{Input: map[string]any{"how": test.how, "path": test.path}})
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case test.fault == "":
			wantStatus(t, res, flow.Done)
		case res.Err == nil || !strings.Contains(res.Err.Error(), test.fault) || string(tea.AsError(res.Err).Type) != test.kind:
			t.Errorf("%s %q: %s %v, want %s", test.how, test.path, res.Status, res.Err, test.fault)
		}
	}
}

func TestWorkflowThatRunsItselfEnds(t *testing.T) {
	t.Parallel()
	for name, node := range map[string]string{
		"node":       `{name: a, uses: workflow.run, with: {path: main.yaml}}`,
		"lua":        `{name: a, run: "return tea.action('workflow.run', {path = 'main.yaml'})"}`,
		"each other": `{name: a, uses: workflow.run, with: {path: other.yaml}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := files(t, map[string]string{
				"main.yaml":  "nodes: [" + node + "]",
				"other.yaml": `nodes: [{name: b, steps: [{uses: workflow.run, with: {path: main.yaml}}]}]`,
			})
			res, err := s.wf.Run(t.Context(), host.RunOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if res.Status != flow.Failed || !strings.Contains(res.Err.Error(), "nested more than 64 deep") {
				t.Errorf("status = %s, err = %.200s", res.Status, res.Err)
			}
			if len(res.Err.Error()) > 20_000 {
				t.Errorf("the error has %d bytes", len(res.Err.Error()))
			}
		})
	}
}

// Depth alone does not bound a workflow that runs itself for each item.
func TestWorkflowThatRunsItselfInAMapEnds(t *testing.T) {
	t.Parallel()
	s := files(t, map[string]string{"main.yaml": `
nodes:
  - name: m
    type: dynamic_parallel
    items: [1, 2, 3, 4]
    action: {uses: workflow.run, with: {path: main.yaml}}
    fan_in: j
  - {name: j, run: "return {n = #parallel_results}"}
`})
	res, err := s.wf.Run(t.Context(), host.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if res.Status != flow.Stopped || !strings.Contains(res.Err.Error(), "budget reached: recursion") {
		t.Errorf("status = %s, err = %.200s", res.Status, res.Err)
	}
}

package host_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
)

func TestChangedWorkflow(t *testing.T) {
	t.Parallel()
	const before = `
nodes:
  - {name: a, uses: count.hit, with: {name: a}, output: a}
  - {name: b, uses: count.hit, with: {name: b}, output: b}
  - {name: stop, interrupt: before}
`
	tests := []struct {
		name, after    string
		force, migrate bool
		// want is the state's key v, or a part of the error.
		want, wantErr string
	}{
		{"refused", strings.Replace(before, "stop, interrupt: before", "stop, run: \"return {v = 'new'}\"", 1), false, false, "", "has changed"},
		{"migrated", strings.Replace(before, "stop, interrupt: before", "stop, run: \"return {v = 'new'}\"", 1), false, true, "new", ""},
		{"a node is gone", strings.Replace(before, "name: b,", "name: other,", 1), false, true, "", "the node b"},
		{"a node is gone, by force", "nodes: [{name: a, uses: count.hit, with: {name: a}}, {name: c, run: \"return {v = 'c'}\"}]", true, false, "c", ""},
		{"the next node is gone", "nodes: [{name: a, uses: count.hit, with: {name: a}}, {name: b, if: 'false'}, {name: z, run: \"return {v = 'z'}\"}]", false, true, "", "the node stop"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t, before)
			res := s.run(host.RunOptions{})
			wantStatus(t, res, flow.Waiting, "stop:before")
			changed := newSession(t, test.after)
			again, err := changed.wf.Resume(t.Context(), res.RunID, host.RunOptions{CheckpointDir: s.dir, Force: test.force, Migrate: test.migrate})
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("err = %v, want %q", err, test.wantErr)
				}
				if test.wantErr == "has changed" && !errors.Is(err, host.ErrWorkflowChanged) {
					t.Error("the error is not ErrWorkflowChanged")
				}
				return
			}
			if err != nil || again.State["v"] != test.want {
				t.Fatalf("state = %v, err = %v", again, err)
			}
			if changed.c.calls["a"] != 0 {
				t.Error("a finished node was run again")
			}
		})
	}
}

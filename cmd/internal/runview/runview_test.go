package runview

import (
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/host/flow"
)

func TestAnswersTo(t *testing.T) {
	t.Parallel()
	pending := []flow.Interrupt{
		{ID: "a:before", Node: "a", Path: "a", Kind: flow.InterruptBefore},
		{ID: "m[0]/b:ask", Node: "b", Path: "m[0]/b", Kind: flow.InterruptAsk},
		{ID: "m[1]/b:ask", Node: "b", Path: "m[1]/b", Kind: flow.InterruptAsk},
	}
	for name, test := range map[string]struct {
		given map[string]any
		err   string
	}{
		"stops":         {nil, ""},
		"by path":       {map[string]any{"m[0]/b": 1, "m[1]/b:ask": 2}, ""},
		"ambiguous":     {map[string]any{"b": 1}, `several interrupts match "b"; name one of a:before, m[0]/b:ask, m[1]/b:ask`},
		"unknown":       {map[string]any{"c": 1}, `no pending interrupt "c"; pending: a:before`},
		"one two times": {map[string]any{"m[0]/b": 1, "m[0]/b:ask": 2}, "m[0]/b:ask is answered twice"},
	} {
		got, err := AnswersTo(pending, test.given)
		if (err == nil) != (test.err == "") || err != nil && !strings.HasPrefix(err.Error(), test.err) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := AnswersTo(nil, map[string]any{"c": 1}); err == nil || !strings.HasSuffix(err.Error(), "pending: none") {
		t.Errorf("nothing is pending: %v", err)
	}
}

func TestANodeThatWasCutOffIsStopped(t *testing.T) {
	t.Parallel()
	lines := []string{
		`{"event":"run_start","seq":1,"at":"2026-01-01T00:00:00Z","run_id":"r"}`,
		`{"event":"node_start","seq":2,"at":"2026-01-01T00:00:01Z","run_id":"r","path":"a","node":"a"}`,
		`{"event":"run_end","seq":3,"at":"2026-01-01T00:00:02Z","run_id":"r","status":"stopped"}`,
	}
	for n, want := range map[int]string{2: "running", 3: "stopped"} {
		node, err := FindNode("a", func(fn func(line []byte) error) error {
			for _, line := range lines[:n] {
				if err := fn([]byte(line)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || node == nil || node.Status != want {
			t.Errorf("after %d events: %+v, %v", n, node, err)
		}
	}
}

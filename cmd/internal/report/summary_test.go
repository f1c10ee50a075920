package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// A failure that a line has told is not told again in full.
func TestSummaryDoesNotRepeatAFailure(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := New(&out, Options{})
	r.Event(started("boom"))
	r.Event(event(0, flow.EventNodeError, "boom", map[string]any{"error": "no route", "error_type": "timeout", "duration_ms": 1.0}))
	r.Close()
	r.Summary(&flow.Result{Status: flow.Failed, Err: &flow.NodeError{
		Node: "boom", Path: "boom", Pos: diag.Pos{File: "f.yaml", Line: 3}, Err: tea.Errorf(tea.Timeout, "no route"),
	}}, func(text string) string { return text })
	want := "boom: failed (1ms): timeout: no route\nfailed: f.yaml:3: node \"boom\" failed\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// The reason of a failure is printed once: not again for the map around the
// node, nor for the branch and the run.
func TestReasonOfAFailedItemIsPrintedOnce(t *testing.T) {
	t.Parallel()
	broken := map[string]any{"error": "disk on fire", "error_type": "internal_error", "duration_ms": 1.0}
	node := &flow.NodeError{Node: "0", Path: "m[1]/0", Pos: diag.Pos{File: "f.yaml", Line: 3}, Err: tea.Errorf(tea.InternalError, "disk on fire")}
	res := &flow.Result{Status: flow.Failed, Err: node, FailedBranches: 2, Failures: []flow.Failure{
		{Path: "m[1]", Branch: true, Type: tea.InternalError, Message: "disk on fire"},
		{Path: "m[2]", Branch: true, Type: tea.Timeout, Message: "too slow"},
	}}
	branches := "2 branches failed:\n  m[1]\n  m[2]: timeout: too slow\n"
	for _, c := range []struct {
		name  string
		quiet bool
		want  string
	}{
		{"plain", false, `m[1]/0: failed (1ms): internal_error: disk on fire
m[1]: failed (1ms)
m: failed (1ms)
failed: f.yaml:3: node "m[1]/0" failed
` + branches},
		{"quiet", true, "failed: f.yaml:3: node \"m[1]/0\" failed: internal_error: disk on fire\n" + branches},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			r := New(&out, Options{Quiet: c.quiet})
			for _, path := range []string{"m", "m[1]", "m[1]/0"} {
				r.Event(started(path))
			}
			for _, path := range []string{"m[1]/0", "m[1]", "m"} {
				r.Event(event(0, flow.EventNodeError, path, broken))
			}
			r.Close()
			r.Summary(res, func(text string) string { return text })
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A source line and its marks fit the terminal.
func TestExcerptFitsTheTerminal(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(file, []byte(strings.Repeat("word ", 40)), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r := New(&out, Options{Size: func() (int, int) { return 40, 24 }})
	r.Summary(&flow.Result{Status: flow.Failed, Err: &flow.NodeError{
		Path: "a", Pos: diag.Pos{File: file, Line: 1}, InCode: true, Err: tea.Errorf(tea.Timeout, "slow"),
	}}, func(text string) string { return text })
	for line := range strings.Lines(out.String()) {
		if textWidth(strings.TrimSuffix(line, "\n")) > 39 {
			t.Errorf("too wide: %q", line)
		}
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	mask := func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }
	by := at(0).Format("2006-01-02 15:04:05 MST")
	tests := []struct {
		name string
		res  flow.Result
		want string
	}{
		{
			"done",
			flow.Result{Status: flow.Done, Elapsed: 1500 * time.Millisecond, Usage: flow.Usage{Steps: 3, Tokens: 1, USD: 0.5, ToolCalls: 2}},
			"done in 1.5s · 3 steps · 1 token · 2 tool calls · $0.5000\n",
		},
		{
			"waiting",
			flow.Result{Status: flow.Waiting, Usage: flow.Usage{Steps: 1}, Pending: []flow.Interrupt{
				{ID: "ask:ask", Question: "hunter2?\n  1. \x1by\x01es\n", Choices: []any{"a"}, Default: int64(1)},
			}},
			"waiting · 1 interrupt · 1 step\n  ask:ask:\n      ***?\n        1.  y es\n    choices: [\"a\"]\n    default: 1\n",
		},
		{
			"a question with a deadline",
			flow.Result{Status: flow.Waiting, Pending: []flow.Interrupt{
				{ID: "a:ask", Deadline: at(0), OnTimeout: "default", Default: "high"},
				{ID: "b:ask", Deadline: at(0), OnTimeout: "deny"},
				{ID: "c:ask", Deadline: at(0), OnTimeout: "fail"},
			}},
			"waiting · 3 interrupts · 0 steps\n  a:ask\n    default: \"high\"\n    answer by " + by + "; later a resume uses \"high\"\n" +
				"  b:ask\n    answer by " + by + "; later a resume uses false\n" +
				"  c:ask\n    answer by " + by + "; later a resume fails the question\n",
		},
		{
			"failed",
			flow.Result{Status: flow.Failed, Err: &flow.NodeError{Node: "a", Path: "a", Err: tea.Errorf(tea.Timeout, "hunter2")}},
			"failed: node \"a\" failed: timeout: ***\n",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			New(&out, Options{}).Summary(&test.res, mask)
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

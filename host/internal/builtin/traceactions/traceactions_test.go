package traceactions_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/builtin/traceactions"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// caller calls the actions of one bundle as the nodes of a run.
type caller struct {
	t        *testing.T
	instance *tea.Instance
	host     *teatest.Host
	calls    int
}

func open(t *testing.T) *caller {
	t.Helper()
	instance, err := traceactions.Bundle("1.0.0").NewInstance(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &caller{t: t, instance: instance, host: &teatest.Host{}}
}

func (c *caller) call(node, action string, params map[string]any) (map[string]any, error) {
	c.t.Helper()
	c.calls++
	resp, err := c.instance.Invoke(c.t.Context(), &tea.Request{
		Action: action, Params: tea.ValuePayload(params), Host: c.host,
		Call: tea.Call{RunID: "run", Node: node, Attempt: 1, IdempotencyKey: node + string(rune('a'+c.calls))},
	})
	if err != nil {
		return nil, err
	}
	v, err := resp.Result.Value()
	if err != nil {
		c.t.Fatal(err)
	}
	return v.(map[string]any), nil
}

func (c *caller) must(node, action string, params map[string]any) map[string]any {
	c.t.Helper()
	res, err := c.call(node, action, params)
	if err != nil {
		c.t.Fatalf("%s: %v", action, err)
	}
	return res
}

func TestSpanLastsFromStartToEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := open(t)
		id := c.must("begin", "trace.start", map[string]any{"name": "work", "attributes": map[string]any{"device": "d1"}})["span_id"]
		time.Sleep(1500 * time.Millisecond) //nolint:forbidigo // the bubble's clock, which waits for nothing
		c.must("mid", "trace.log", map[string]any{"message": "half", "level": "warn", "fields": map[string]any{"n": int64(1)}})
		got := c.must("end", "trace.end", map[string]any{"error": "broken"})
		if diff := cmp.Diff(map[string]any{"success": true, "span_id": id, "duration_ms": 1500.0}, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		want := []teatest.Log{
			{Level: slog.LevelDebug, Message: "trace.start work", Fields: map[string]any{"trace": map[string]any{
				"kind": "start", "span_id": id, "name": "work", "attributes": map[string]any{"device": "d1"},
			}}},
			{Level: slog.LevelWarn, Message: "half", Fields: map[string]any{"n": int64(1), "trace": map[string]any{"kind": "log", "span_id": id}}},
			{Level: slog.LevelDebug, Message: "trace.end", Fields: map[string]any{"duration_ms": 1500.0, "trace": map[string]any{
				"kind": "end", "span_id": id, "failed": true, "error": "broken",
			}}},
		}
		if diff := cmp.Diff(want, c.host.Recorded().Logs); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestInnermostSpanOfTheNodesOwnSequence(t *testing.T) {
	t.Parallel()
	c := open(t)
	start := func(node string) any { return c.must(node, "trace.start", map[string]any{"name": node})["span_id"] }
	outer := start("a")
	left, right := start("f>left/x"), start("f>right/x")
	steps := []struct {
		node, action string
		params       map[string]any
		want         any
	}{
		{"f>left/y", "trace.log", map[string]any{"message": "m"}, left},
		{"f>left/sub/y", "trace.log", map[string]any{"message": "m"}, left},
		{"f>right/y", "trace.end", map[string]any{}, right},
		{"f>right/z", "trace.log", map[string]any{"message": "m"}, outer},
		{"f>right/z", "trace.end", map[string]any{"span_id": left}, left},
		{"b", "trace.end", map[string]any{}, outer},
		{"b", "trace.log", map[string]any{"message": "m"}, ""},
	}
	for _, s := range steps {
		if got := c.must(s.node, s.action, s.params)["span_id"]; got != s.want {
			t.Errorf("%s in %s: span %v, want %v", s.action, s.node, got, s.want)
		}
	}
}

func TestEndWithoutAnOpenSpanWarnsOnly(t *testing.T) {
	t.Parallel()
	c := open(t)
	got := c.must("end", "trace.end", map[string]any{})
	if diff := cmp.Diff(map[string]any{"success": true, "span_id": "", "duration_ms": 0.0}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if logs := c.host.Recorded().Logs; len(logs) != 1 || logs[0].Level != slog.LevelWarn || len(logs[0].Fields) != 0 {
		t.Errorf("logs: %v", logs)
	}
}

func TestWrongParametersAreRefused(t *testing.T) {
	t.Parallel()
	c := open(t)
	for action, params := range map[string]map[string]any{
		"trace.start": {"name": ""},
		"trace.log":   {"message": "m", "level": "loud"},
		"trace.end":   {"status": "so so"},
	} {
		_, err := c.call("n", action, params)
		if e := tea.AsError(err); e == nil || e.Type != tea.ValidationError {
			t.Errorf("%s: got %v, want a validation_error", action, err)
		}
	}
}

package trace_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/trace"
	tea "github.com/the-edge-agent/tea/sdk"
)

// calls makes a run of one node, which uses an action or, where uses is "",
// calls it from Lua, and returns the spans and what the action was told.
func calls(t *testing.T, o trace.Options, uses string, fail error) (spans []span, told string) {
	t.Helper()
	o.File = filepath.Join(t.TempDir(), "spans.jsonl")
	tracer, err := trace.New(o)
	if err != nil {
		t.Fatal(err)
	}
	list := events(
		flow.Event{Type: flow.EventRunStart, Fields: fields(map[string]any{"workflow": "flow"})},
		flow.Event{Type: flow.EventNodeStart, Node: "n", Path: "n", Fields: fields(map[string]any{"uses": uses})},
		flow.Event{Type: flow.EventNodeEnd, Node: "n", Path: "n", Fields: fields(map[string]any{
			"model": "small-1", "provider": "openai", "finish_reason": "stop",
			"usage": map[string]any{"input_tokens": int64(7), "output_tokens": int64(2)},
		})},
		flow.Event{Type: flow.EventRunEnd, Fields: fields(map[string]any{"status": "done"})},
	)
	tracer.Event(list[0])
	tracer.Event(list[1])
	req := &tea.Request{
		Action: "llm.call", Params: tea.ValuePayload(map[string]any{"model": "small", "prompt": "the key is hush", "temperature": 0.5}),
		Call: tea.Call{RunID: "run1", Node: "n", Attempt: 1, IdempotencyKey: "k", Traceparent: "theirs"},
	}
	_, got := tracer.Invoke(t.Context(), req, func(_ context.Context, req *tea.Request) (*tea.Response, error) {
		told = req.Traceparent
		if fail != nil {
			return nil, fail
		}
		return tea.Respond(map[string]any{
			"success": true, "content": "hush", "model": "small-1", "provider": "openai", "finish_reason": "stop",
			"usage": map[string]any{"input_tokens": int64(7), "output_tokens": int64(2)},
		}), nil
	})
	if got != fail || req.Traceparent != "theirs" {
		t.Errorf("error %v, want %v; the caller's request says %q", got, fail, req.Traceparent)
	}
	tracer.Event(list[2])
	tracer.Event(list[3])
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return readSpans(t, o.File), told
}

func attributes(s span) map[string]any {
	m := map[string]any{}
	for _, a := range s.Attributes {
		if strings.HasPrefix(a.Key, "gen_ai.") || a.Key == "tea.params" || a.Key == "tea.result" {
			m[a.Key] = s.attribute(a.Key)
		}
	}
	return m
}

// The name of an action that Lua calls can hold anything.
func TestSecretInTheNameOfAnActionIsMasked(t *testing.T) {
	t.Parallel()
	o := trace.Options{File: filepath.Join(t.TempDir(), "spans.jsonl"), Mask: host.NewMask(map[string]any{"key": "hush-hush"})}
	tracer, err := trace.New(o)
	if err != nil {
		t.Fatal(err)
	}
	list := events(flow.Event{Type: flow.EventRunStart}, flow.Event{Type: flow.EventNodeStart, Node: "n", Path: "n"})
	tracer.Event(list[0])
	tracer.Event(list[1])
	req := &tea.Request{Action: "file.hush-hush", Call: tea.Call{RunID: list[0].RunID, Node: "n"}}
	_, _ = tracer.Invoke(t.Context(), req, func(_ context.Context, req *tea.Request) (*tea.Response, error) {
		return nil, tea.Errorf(tea.NotFound, "there is no action %q", req.Action)
	})
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(o.File)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(written), `"file.***"`) || strings.Contains(string(written), "hush") {
		t.Errorf("the trace: %s", written)
	}
}

func TestCallOfAnActionNodeIsTheNodesSpan(t *testing.T) {
	t.Parallel()
	spans, told := calls(t, trace.Options{}, "llm.call", nil)
	if diff := cmp.Diff("flow\n  n\n", tree(spans)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if want := "00-" + spans[0].TraceID + "-" + spans[0].SpanID + "-01"; told != want {
		t.Errorf("the action was told %s, want %s", told, want)
	}
	want := map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai",
		"gen_ai.request.model": "small", "gen_ai.request.temperature": 0.5, "gen_ai.response.model": "small-1",
		"gen_ai.response.finish_reasons": map[string]any{"values": []any{map[string]any{"stringValue": "stop"}}},
		"gen_ai.usage.input_tokens":      "7", "gen_ai.usage.output_tokens": "2",
	}
	if diff := cmp.Diff(want, attributes(spans[0])); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFurtherCallHasItsOwnSpan(t *testing.T) {
	t.Parallel()
	spans, told := calls(t, trace.Options{Mask: host.NewMask(map[string]any{"key": "hush"})}, "", tea.Errorf(tea.RateLimited, "key hush is used up"))
	if diff := cmp.Diff("flow\n  n\n    llm.call FAILED(rate_limited) [exception]\n", tree(spans)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	call := spans[0]
	if want := "00-" + call.TraceID + "-" + call.SpanID + "-01"; told != want {
		t.Errorf("the action was told %s, want %s", told, want)
	}
	if call.Status.Message != "key *** is used up" {
		t.Errorf("message %q", call.Status.Message)
	}
}

func TestContentsOnRequestAndWithoutSecrets(t *testing.T) {
	t.Parallel()
	spans, _ := calls(t, trace.Options{Contents: true, Mask: host.NewMask(map[string]any{"key": "hush"})}, "llm.call", nil)
	got := attributes(spans[0])
	if diff := cmp.Diff(`{"model":"small","prompt":"the key is ***","temperature":0.5}`, got["tea.params"]); diff != "" {
		t.Error(diff)
	}
	if result, _ := got["tea.result"].(string); !strings.Contains(result, `"content":"***"`) {
		t.Errorf("result %s", result)
	}
}

func TestCallsOfUnknownRunsGoThrough(t *testing.T) {
	t.Parallel()
	tracer, err := trace.New(trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tracer.Invoke(t.Context(), &tea.Request{Action: "a.b"}, func(context.Context, *tea.Request) (*tea.Response, error) {
		return tea.Respond("x"), nil
	})
	if err != nil || resp == nil {
		t.Errorf("got %v, %v", resp, err)
	}
}

func TestTokensAreContents(t *testing.T) {
	t.Parallel()
	for contents, want := range map[bool]any{false: nil, true: `[{"parts":[{"content":"private","type":"text"}],"role":"assistant"}]`} {
		path := filepath.Join(t.TempDir(), "spans.jsonl")
		if err := feed(t, trace.Options{File: path, Contents: contents}, smallRun()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, readSpans(t, path)[0].attribute("gen_ai.output.messages")); diff != "" {
			t.Errorf("contents %v: %s", contents, diff)
		}
	}
}

package trace_test

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/trace"
)

func TestConsoleTree(t *testing.T) {
	t.Parallel()
	node := func(kind flow.EventType, name, path string, members map[string]any) flow.Event {
		return flow.Event{Type: kind, Node: name, Path: path, Fields: fields(members)}
	}
	branch := func(kind flow.EventType, path, name string) flow.Event {
		return flow.Event{Type: kind, Path: path, Fields: fields(map[string]any{"branch": name})}
	}
	var out bytes.Buffer
	err := feed(t, trace.Options{Exporter: trace.Console, Console: &out}, events(
		flow.Event{Type: flow.EventRunStart, Fields: fields(map[string]any{"workflow": "gateway"})},
		node(flow.EventNodeStart, "read", "read", nil),
		node(flow.EventLog, "read", "read", map[string]any{"level": "INFO", "message": "two\nlines"}),
		node(flow.EventNodeEnd, "read", "read", nil),
		branch(flow.EventBranchStart, "read>b", "b"),
		branch(flow.EventBranchStart, "read>c", "c"),
		node(flow.EventNodeStart, "c", "read>c/c", map[string]any{"uses": "http.get"}),
		node(flow.EventNodeStart, "b", "read>b/b", nil),
		node(flow.EventRetry, "c", "read>c/c", map[string]any{"attempt": int64(1), "wait_ms": 0.5, "error": "refused", "error_type": "connection_error"}),
		node(flow.EventNodeError, "c", "read>c/c", map[string]any{"attempts": int64(2), "error": "refused \x1b[31m", "error_type": "connection_error"}),
		branch(flow.EventBranchEnd, "read>b", "b"),
		branch(flow.EventBranchEnd, "read>c", "c"),
		node(flow.EventNodeStart, "explain", "explain", nil),
		node(flow.EventNodeEnd, "explain", "explain", map[string]any{
			"model": "tiny", "usage": map[string]any{"input_tokens": int64(12), "output_tokens": int64(3)},
		}),
		flow.Event{Type: flow.EventRunEnd, Fields: fields(map[string]any{"status": "done"})},
	))
	if err != nil {
		t.Fatal(err)
	}
	const want = `trace 34e9aedefffddf04c3cf3f9e055ba714
gateway  14ms
├─ read  2ms
│  └─ · two lines
├─ branch b  6ms
│  └─ b  3ms  unfinished
├─ branch c  6ms
│  └─ c  3ms  http.get  FAILED refused  [31m
│     ├─ · retry refused
│     └─ c  500µs  attempt 2  FAILED refused  [31m
└─ explain  1ms  tiny  12+3 tokens
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// fields are the members of an object, by name.
func fields(members map[string]any) []flow.Field {
	var list []flow.Field
	for _, key := range slices.Sorted(maps.Keys(members)) {
		list = append(list, flow.Field{Key: key, Value: members[key]})
	}
	return list
}

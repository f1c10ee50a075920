package trace_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/trace"
)

func TestConsoleTree(t *testing.T) {
	t.Parallel()
	node := func(kind host.EventType, name, path string, fields map[string]any) host.Event {
		return host.Event{Type: kind, Node: name, Path: path, Fields: fields}
	}
	branch := func(kind host.EventType, path, name string) host.Event {
		return host.Event{Type: kind, Path: path, Fields: map[string]any{"branch": name}}
	}
	var out bytes.Buffer
	err := feed(t, trace.Options{Exporter: trace.Console, Console: &out}, events(
		host.Event{Type: host.EventRunStart, Fields: map[string]any{"workflow": "gateway"}},
		node(host.EventNodeStart, "read", "read", nil),
		node(host.EventLog, "read", "read", map[string]any{"level": "INFO", "message": "two\nlines"}),
		node(host.EventNodeEnd, "read", "read", nil),
		branch(host.EventBranchStart, "read>b", "b"),
		branch(host.EventBranchStart, "read>c", "c"),
		node(host.EventNodeStart, "c", "read>c/c", map[string]any{"uses": "http.get"}),
		node(host.EventNodeStart, "b", "read>b/b", nil),
		node(host.EventRetry, "c", "read>c/c", map[string]any{"attempt": int64(1), "wait_ms": 0.5, "error": "refused", "error_type": "connection_error"}),
		node(host.EventNodeError, "c", "read>c/c", map[string]any{"attempts": int64(2), "error": "refused \x1b[31m", "error_type": "connection_error"}),
		branch(host.EventBranchEnd, "read>b", "b"),
		branch(host.EventBranchEnd, "read>c", "c"),
		node(host.EventNodeStart, "explain", "explain", nil),
		node(host.EventNodeEnd, "explain", "explain", map[string]any{
			"model": "tiny", "usage": map[string]any{"input_tokens": int64(12), "output_tokens": int64(3)},
		}),
		host.Event{Type: host.EventRunEnd, Fields: map[string]any{"status": "done"}},
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

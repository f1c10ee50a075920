package trace_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/internal/builtin/traceactions"
	"github.com/the-edge-agent/tea/host/trace"
	tea "github.com/the-edge-agent/tea/sdk"
)

// span is a span as it is in the file, with what the tests look at.
type span struct {
	TraceID, SpanID, ParentSpanID, Name string
	StartTimeUnixNano, EndTimeUnixNano  string
	Attributes                          []attribute
	Events                              []struct{ Name string }
	Status                              struct {
		Code    int
		Message string
	}
}

type attribute struct {
	Key   string
	Value map[string]any
}

func (s span) attribute(key string) any {
	for _, a := range s.Attributes {
		if a.Key == key {
			for _, v := range a.Value {
				return v
			}
		}
	}
	return nil
}

// readSpans reads the lines of a trace file.
func readSpans(t *testing.T, path string) []span {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var spans []span
	for line := range strings.Lines(string(data)) {
		var traces struct {
			ResourceSpans []struct{ ScopeSpans []struct{ Spans []span } }
		}
		if err := json.Unmarshal([]byte(line), &traces); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		spans = append(spans, traces.ResourceSpans[0].ScopeSpans[0].Spans...)
	}
	return spans
}

// tree draws spans by their parents: name, what went wrong, entries. What
// stands under one span is in the order of names.
func tree(spans []span) string {
	var b strings.Builder
	var draw func(parent, indent string)
	draw = func(parent, indent string) {
		var below []span
		for _, s := range spans {
			if s.ParentSpanID == parent {
				below = append(below, s)
			}
		}
		slices.SortStableFunc(below, func(a, b span) int { return strings.Compare(a.Name, b.Name) })
		for _, s := range below {
			b.WriteString(indent + s.Name)
			if s.Status.Code == 2 {
				fmt.Fprintf(&b, " FAILED(%s)", s.attribute("error.type"))
			}
			if s.attribute("tea.unfinished") == true {
				b.WriteString(" unfinished")
			}
			for _, e := range s.Events {
				fmt.Fprintf(&b, " [%s]", e.Name)
			}
			b.WriteByte('\n')
			draw(s.SpanID, indent+"  ")
		}
	}
	draw("", "")
	return b.String()
}

// run runs a workflow with a tracer and returns its spans.
func run(t *testing.T, text string, o host.RunOptions, actions ...tea.Action) []span {
	t.Helper()
	// The trace's own actions under another name, whatever the host has.
	marks := traceactions.Bundle("1.0.0")
	marks.Name = "marks"
	for i, a := range marks.Actions {
		marks.Actions[i].Name = strings.Replace(a.Name, "trace.", "marks.", 1)
	}
	h, err := host.New(host.Options{Actions: actions, Bundles: []*tea.Bundle{marks}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	wf, err := h.Parse("test.yaml", []byte(text), host.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer wf.Close()
	path := filepath.Join(t.TempDir(), "spans.jsonl")
	tracer, err := trace.New(trace.Options{File: path})
	if err != nil {
		t.Fatal(err)
	}
	o.Events = tracer.Event
	if _, err := wf.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return readSpans(t, path)
}

func TestTreeOfSpans(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"parallel", `
name: flow
nodes:
  - {name: a, run: "return {x = 1}"}
  - {name: b, run: "return {r = 1}"}
  - {name: b2, run: "tea.log('info', 'half way') return {}"}
  - {name: c, run: "return {r = 2}"}
  - {name: join, run: "return {done = true}"}
edges:
  - {from: a, to: b, type: parallel, fan_in: join}
  - {from: a, to: c, type: parallel, fan_in: join}
  - {from: b, to: b2}
  - {from: b2, to: join}
  - {from: c, to: join}
`, `flow
  a
  branch b
    b
    b2 [half way]
  branch c
    c
  join
`},
		{"loop, map, steps", `
name: flow
initial_state: {n: 0}
nodes:
  - name: loop
    type: while_loop
    condition: state.n < 2
    max_iterations: 5
    body:
      - {name: inc, run: "return {n = state.n + 1}"}
  - name: each
    type: dynamic_parallel
    items: "{{ [1, 2] }}"
    steps:
      - {name: one, run: "return {}"}
      - {name: two, run: "return {}"}
`, `flow
  each
    branch each[0]
      each
        one
        two
    branch each[1]
      each
        one
        two
  loop [loop] [loop]
    inc
    inc
`},
		{"failure", `
name: flow
nodes:
  - name: outer
    steps:
      - {name: good, run: "return {}"}
      - {name: bad, uses: json.parse, with: {text: "{"}}
`, `flow FAILED(validation_error) [exception]
  outer FAILED(validation_error) [exception]
    bad FAILED(validation_error) [exception]
    good
`},
		{"a failed branch is a result", `
name: flow
nodes:
  - {name: a}
  - {name: b, uses: json.parse, with: {text: "{"}}
  - {name: c, run: "return {}"}
  - {name: join, run: "return {n = #parallel_results}"}
edges:
  - {from: a, parallel: [b, c], fan_in: join}
`, `flow
  a
  branch b FAILED(validation_error) [exception]
    b FAILED(validation_error) [exception]
  branch c
    c
  join
`},
		{"spans of the workflow's own", `
name: flow
nodes:
  - {name: before, run: "return {}"}
  - {name: open, uses: marks.start, with: {name: work, attributes: {device: d1}}}
  - {name: in1, uses: marks.log, with: {message: entry, level: warn}}
  - {name: fan}
  - name: left
    run: |
      tea.action("marks.start", {name = "inner"})
      return {}
  - {name: left2, uses: marks.end}
  - {name: right, uses: marks.start, with: {name: forgotten}}
  - {name: join}
  - {name: close, uses: marks.end, with: {error: it broke}}
  - {name: after, run: "return {}"}
edges:
  - {from: fan, parallel: [left, right], fan_in: join}
  - {from: left, to: left2}
  - {from: left2, to: join}
  - {from: right, to: join}
`, `flow
  after
  before
  open
  work FAILED(error) [entry] [exception]
    branch left
      inner
        left2
      left
    branch right
      forgotten unfinished
      right
    close
    fan
    in1
    join
`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			spans := run(t, test.text, host.RunOptions{})
			if diff := cmp.Diff(test.want, tree(spans)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for _, s := range spans {
				if s.TraceID != spans[0].TraceID || s.StartTimeUnixNano > s.EndTimeUnixNano {
					t.Errorf("span %s: trace %s, from %s to %s", s.Name, s.TraceID, s.StartTimeUnixNano, s.EndTimeUnixNano)
				}
			}
		})
	}
}

// What plugins are told must be the span that is exported, or their own spans
// hang in the air.
func TestEachAttemptHasTheSpanThatPluginsAreTold(t *testing.T) {
	t.Parallel()
	var told []string
	flaky := tea.Action{Name: "test.flaky", Handle: func(_ context.Context, req *tea.Request) (*tea.Response, error) {
		told = append(told, req.Traceparent)
		if len(told) < 3 {
			return nil, tea.Errorf(tea.ConnectionError, "no answer")
		}
		return tea.Respond(nil), nil
	}}
	spans := run(t, "name: flow\nnodes: [{name: n, uses: test.flaky, retry: {max_retries: 3, backoff_base_ms: 1}}]", host.RunOptions{}, flaky)
	want := `flow
  n [retry] [retry]
    n FAILED(connection_error) [exception]
    n
`
	if diff := cmp.Diff(want, tree(spans)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	exported := map[any]string{}
	for _, s := range spans {
		if s.Name == "n" {
			attempt := s.attribute("tea.attempt")
			if attempt == nil {
				attempt = "1"
			}
			exported[attempt] = "00-" + s.TraceID + "-" + s.SpanID + "-01"
		}
	}
	for i, parent := range told {
		if got := exported[fmt.Sprint(i+1)]; got != parent {
			t.Errorf("attempt %d: exported %s, the action was told %s", i+1, got, parent)
		}
	}
}

func TestRetriedBranch(t *testing.T) {
	t.Parallel()
	calls := 0
	flaky := host.Func("test.flaky", "Fails once.", func(context.Context, map[string]any) (any, error) {
		if calls++; calls == 1 {
			return nil, tea.Errorf(tea.ConnectionError, "no answer")
		}
		return nil, nil
	})
	spans := run(t, `
name: flow
nodes: [{name: a}, {name: b, uses: test.flaky, retry: {max_retries: 0}}, {name: join}]
edges: [{from: a, parallel: [b], fan_in: join}]
config: {parallel: {retry: {max_retries: 1, base_delay: 0.001}}}
`, host.RunOptions{}, flaky)
	want := `flow
  a
  branch b [retry]
    b FAILED(connection_error) [exception]
    branch b
      b
  join
`
	if diff := cmp.Diff(want, tree(spans)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestStoppedRunEndsAllSpans(t *testing.T) {
	t.Parallel()
	spans := run(t, "name: flow\nnodes: [{name: ask, steps: [{name: q, uses: human.ask, with: {question: 'Go on?'}}]}]", host.RunOptions{})
	want := `flow
  ask unfinished
    q unfinished [interrupt]
`
	if diff := cmp.Diff(want, tree(spans)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

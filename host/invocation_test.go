package host_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// eachParams are the parameters of test.each: for each name it calls an action
// with the templates in with and output.
type eachParams struct {
	Names  []string `json:"names"`
	Action string   `json:"action"`
	Do     deferred `json:"do,omitempty"`
	// Data are parameters whose templates are the caller's.
	Data any `json:"data,omitempty"`
	// Attempt is the attempt of each call.
	Attempt int `json:"attempt,omitempty"`
}

type deferred struct {
	With   later `json:"with,omitempty"`
	Output later `json:"output,omitempty"`
}

// later is a parameter whose templates are evaluated for each call.
type later struct{ value any }

func (later) JSONSchema() *schema.Schema {
	return &schema.Schema{Extra: map[string]any{tea.Templates: []any{"task"}}}
}

func (l *later) UnmarshalJSON(data []byte) (err error) {
	l.value, err = tea.RawPayload(data).Value()
	return err
}

func callEach(ctx context.Context, req *tea.Request, p eachParams) (map[string]any, error) {
	out := []any{}
	for _, name := range p.Names {
		params := p.Do.With.value
		if params == nil {
			params = p.Data
		}
		resp, err := req.Invoke(ctx, tea.Invocation{
			Action: p.Action, Params: params, Key: name, Attempt: p.Attempt, Output: p.Do.Output.value,
			Roots: map[string]any{"task": map[string]any{"name": name}},
		})
		if err != nil {
			return nil, err
		}
		result, err := resp.Result.Value()
		if err != nil {
			return nil, err
		}
		out = append(out, result)
	}
	return map[string]any{"results": out}, nil
}

// keyed returns the action test.each and one that returns its parameters and
// its idempotency key.
func keyed() []tea.Action {
	return []tea.Action{
		tea.NewAction("test.each", "Calls an action for each name.", callEach),
		{Name: "test.echo", Handle: func(_ context.Context, req *tea.Request) (*tea.Response, error) {
			params, err := req.Params.Value()
			if err != nil {
				return nil, err
			}
			if m, ok := params.(map[string]any); ok && m["fail"] == true {
				return nil, tea.Errorf(tea.NotFound, "told to fail")
			}
			return tea.Respond(map[string]any{"params": params, "key": req.IdempotencyKey}), nil
		}},
	}
}

func TestActionEvaluatesTemplates(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
initial_state: {unit: bar, raw: "{{ task.name }} {{ state.unit }}"}
variables: {limit: 5}
nodes:
  - name: a
    uses: test.each
    with:
      names: ["{{ state.unit }}", second]
      action: test.echo
      do:
        with: {text: "{{ task.name }} {{ state.unit }} {{ variables.limit }}", n: "{{ variables.limit }}", s: "{{ secrets.pin }}"}
        output: {text: "{{ result.params.text }}", n: "{{ result.params.n }}", task: "{{ task.name }}", s: "{{ result.params.s }}"}
  - name: b
    uses: test.each
    with: {names: [one], action: test.echo, data: {raw: "{{ state.raw }}", list: ["{{ state.raw }}"]}, do: {output: "{{ result.params }}"}}
`, keyed()...)
	res := s.run(host.RunOptions{Secrets: map[string]any{"pin": "1234"}})
	wantStatus(t, res, flow.Done)
	want := []any{map[string]any{"raw": "one bar", "list": []any{"one bar"}}}
	if diff := cmp.Diff(want, res.State["results"]); diff != "" {
		t.Error(diff)
	}
	s = newSession(t, `
initial_state: {unit: bar}
variables: {limit: 5}
nodes:
  - {name: a, uses: test.each, with: {names: ["{{ state.unit }}"], action: test.echo, do: {with: {text: "{{ task.name }} {{ state.unit }}", n: "{{ variables.limit }}"}, output: "{{ result.params }}"}}}
`, keyed()...)
	res = s.run(host.RunOptions{})
	wantStatus(t, res, flow.Done)
	if diff := cmp.Diff([]any{map[string]any{"text": "bar bar", "n": int64(5)}}, res.State["results"]); diff != "" {
		t.Error(diff)
	}
}

func TestTemplateThatIsDataReadsNoSecrets(t *testing.T) {
	t.Parallel()
	for _, root := range []string{"secrets.pin", "env.HOME", "settings", "nodes.a", "run.id"} {
		s := newSession(t, `
nodes:
  - {name: a, uses: test.each, with: {names: [one], action: test.echo, data: {text: "{{ state.text }}"}}}
`, keyed()...)
		res := s.run(host.RunOptions{Secrets: map[string]any{"pin": "1234"}, Input: map[string]any{"text": "{{ " + root + " }}"}})
		if res.Status != flow.Failed || !strings.Contains(fmt.Sprint(res.Err), "can read only the names of the action and the state") {
			t.Errorf("%s: %s, %v", root, res.Status, res.Err)
		}
	}
}

// A call with a key keeps its idempotency key whatever its parameters, order and
// attempt are.
func TestKeyOfACall(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
initial_state: {names: [x, y], n: 1, attempt: 1}
nodes:
  - {name: a, uses: test.each, with: {names: "{{ state.names }}", attempt: "{{ state.attempt }}", action: test.echo, data: {n: "{{ state.n }}", fail: "{{ state.fail }}"}, do: {output: "{{ result.key }}"}}}
`, keyed()...)
	first := s.run(host.RunOptions{RunID: "one"})
	wantStatus(t, first, flow.Done)
	keys := first.State["results"].([]any)
	if keys[0] == keys[1] {
		t.Errorf("two keys are one idempotency key: %v", keys)
	}
	s.dir = t.TempDir()
	again := s.run(host.RunOptions{RunID: "one", Input: map[string]any{"names": []any{"y", "x"}, "n": 2, "attempt": 3}})
	wantStatus(t, again, flow.Done)
	if diff := cmp.Diff([]any{keys[1], keys[0]}, again.State["results"]); diff != "" {
		t.Error(diff)
	}
	var events []string
	s.run(host.RunOptions{Input: map[string]any{"names": []any{"x"}, "fail": true}, Events: func(e flow.Event) {
		if e.Path != "" {
			events = append(events, fmt.Sprintf("%s %s %s", e.Type, e.Node, e.Path))
		}
	}})
	if diff := cmp.Diff([]string{"node_start a a", "node_start a a!x", "node_error a a!x", "node_error a a"}, events); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"a/b", "a:b", strings.Repeat("k", 101), "ä"} {
		res := s.run(host.RunOptions{Input: map[string]any{"names": []any{bad}}})
		if res.Status != flow.Failed || !strings.Contains(fmt.Sprint(res.Err), "the key of a call") {
			t.Errorf("%q: %s, %v", bad, res.Status, res.Err)
		}
	}
}

// A call with a key that has succeeded is not made again, although a later
// attempt has other parameters; its end is reported once.
func TestCallWithAKeyIsMadeOnce(t *testing.T) {
	t.Parallel()
	asks := tea.Action{Name: "test.asks", Handle: func(ctx context.Context, req *tea.Request) (*tea.Response, error) {
		var results []any
		for _, key := range []string{"one", "two"} {
			resp, err := req.Invoke(ctx, tea.Invocation{Action: "count.hit", Params: map[string]any{"name": key}, Key: key})
			if err != nil {
				return nil, err
			}
			v, err := resp.Result.Value()
			if err != nil {
				return nil, err
			}
			results = append(results, v)
		}
		_, found, err := req.Host.Note(ctx, tea.CallNote+"one")
		if err != nil || !found {
			return nil, tea.Errorf(tea.InternalError, "no note of the call: %v", err)
		}
		if _, err := req.Invoke(ctx, tea.Invocation{Action: "human.ask", Params: map[string]any{"question": "well?"}, Key: "question"}); err != nil {
			return nil, err
		}
		return tea.Respond(map[string]any{"results": results}), nil
	}}
	s := newSession(t, "nodes: [{name: a, uses: test.asks}]", asks)
	var events []string
	listen := func(e flow.Event) {
		if strings.Contains(e.Path, "!") {
			events = append(events, fmt.Sprintf("%s %s", e.Type, e.Path))
		}
	}
	res := s.run(host.RunOptions{Events: listen})
	wantStatus(t, res, flow.Waiting, "a!question:ask")
	res = s.resume(res.RunID, host.RunOptions{Events: listen, Answers: map[string]any{"a!question:ask": "yes"}})
	wantStatus(t, res, flow.Done)
	s.wantCalls(map[string]int{"one": 1, "two": 1})
	want := []string{
		"node_start a!one", "node_end a!one", "node_start a!two", "node_end a!two", "node_start a!question", "interrupt a!question",
		"node_start a!question", "node_end a!question",
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Error(diff)
	}
}

// An action whose manifest is not stored can add names to templates.
func TestNamesInTheParametersOfAnUncheckedAction(t *testing.T) {
	t.Parallel()
	h, err := host.New(host.Options{Plugins: &asked{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	wf, err := h.Parse("test.yaml", []byte(`
nodes:
  - {name: a, uses: sensors.each, with: {do: "{{ task.name }}"}}
`), host.LoadOptions{})
	if wf != nil {
		wf.Close()
	}
	if err != nil {
		t.Error(err)
	}
}

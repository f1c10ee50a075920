package host_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// parse loads a workflow, with these actions and the host's own.
func parse(t *testing.T, text string, actions ...tea.Action) *host.Workflow {
	t.Helper()
	h, err := host.New(host.Options{Actions: actions})
	if err != nil {
		t.Fatal(err)
	}
	wf, err := h.Parse("test.yaml", []byte(text), host.LoadOptions{})
	if err != nil {
		t.Fatalf("load:\n%v", err)
	}
	t.Cleanup(func() { wf.Close(); h.Close() })
	return wf
}

// run parses and runs a workflow.
func run(t *testing.T, text string, o host.RunOptions, actions ...tea.Action) *flow.Result {
	t.Helper()
	res, err := parse(t, text, actions...).Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func wantState(t *testing.T, res *flow.Result, want map[string]any) {
	t.Helper()
	if res.Status != flow.Done {
		t.Fatalf("status = %s, err = %v", res.Status, res.Err)
	}
	if diff := cmp.Diff(want, res.State); diff != "" {
		t.Error(diff)
	}
}

func TestRunForms(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		input      map[string]any
		want       map[string]any
	}{
		{"chain", `
name: chain
nodes:
  - name: a
    run: return {x = 1}
  - name: b
    run: return {y = state.x + 1}
  - id: c
    uses: json.stringify
    with: {data: "{{ state }}"}
    output: {text: "{{ result.text }}"}
`, nil, map[string]any{"x": int64(1), "y": int64(2), "text": `{"x":1,"y":2}`}},
		{"conditional", `
nodes:
  - {name: a, run: "return {n = state.n + 1}"}
  - {name: big, run: "return {size = 'big'}"}
  - {name: small, run: "return {size = 'small'}"}
edges:
  - {from: START, to: a}
  - {from: a, to: small}
  - {from: a, to: big, when: "n > 10"}
  - {from: big, to: END}
  - {from: small, to: END}
`, map[string]any{"n": int64(10)}, map[string]any{"n": int64(11), "size": "big"}},
		{"parallel with join", `
nodes:
  - {name: a, run: "return {x = 1}"}
  - {name: b, run: "return {r = state.x + 1}"}
  - {name: c, run: "return {r = state.x + 2}"}
  - name: join
    run: |
      local sum = 0
      for _, p in ipairs(parallel_results) do sum = sum + p.state.r end
      return {sum = sum, first = parallel_results[1].branch}
edges:
  - {from: a, to: b, type: parallel, fan_in: join}
  - {from: a, to: c, type: parallel, fan_in: join}
`, nil, map[string]any{"x": int64(1), "sum": int64(5), "first": "b"}},
		{"parallel without join, reducer", `
state_schema:
  log: {type: list, reducer: append}
  last: str
nodes:
  - {name: a, run: "return {log = 'a'}"}
  - {name: b, run: "return {log = 'b', last = 'b'}"}
  - {name: c, run: "return {log = 'c', last = 'c'}"}
edges:
  - {from: a, parallel: [b, c]}
  - {from: b, to: END}
  - {from: c, to: END}
`, nil, map[string]any{"log": []any{"a", "b", "c"}, "last": "c"}},
		{"loop", `
initial_state: {n: 0}
nodes:
  - name: loop
    type: while_loop
    condition: state.n < 3
    max_iterations: 10
    body:
      - {name: inc, run: "return {n = state.n + 1}"}
  - {name: after, run: "return {done = true}"}
`, nil, map[string]any{"n": int64(3), "done": true}},
		{"map", `
nodes:
  - name: each
    type: dynamic_parallel
    items: "{{ state.list }}"
    action:
      uses: json.stringify
      with: {data: "{{ item }}"}
      output: {text: "{{ result.text }}"}
    fan_in: join
  - name: join
    run: |
      local out = {}
      for i, p in ipairs(parallel_results) do out[i] = p.state.text end
      return {out = out}
`, map[string]any{"list": []any{int64(1), "x", true}}, map[string]any{"list": []any{int64(1), "x", true}, "out": []any{"1", `"x"`, "true"}}},
		{"steps", `
nodes:
  - name: s
    steps:
      - run: return {a = 1}
      - uses: json.stringify
        with: {data: "{{ state.a }}"}
        output: {b: "{{ result.text }}"}
`, nil, map[string]any{"a": int64(1), "b": "1"}},
		{"a step that fails and goes on", `
error_policy: {on_failure: continue}
nodes:
  - name: s
    steps:
      - {name: bad, on_error: continue, run: "error('no')"}
      - run: "return {a = 1, n = #state.__errors__}"
  - {name: undone, steps: [{run: "return {b = 1}"}, {run: "error('no')"}]}
  - {name: end, run: "return {n = state.n + #state.__errors__, __errors__ = tea.null}"}
`, nil, map[string]any{"a": int64(1), "n": int64(3), "__errors__": nil}},
		{"goto", `
nodes:
  - name: a
    run: return {n = (state.n or 0) + 1}
    goto:
      - {if: "state.n < 3", to: a}
      - {to: z}
  - {name: skipped, run: "return {bad = true}"}
  - {name: z, run: "return {z = true}"}
`, nil, map[string]any{"n": int64(3), "z": true}},
		{"continue on error", `
nodes:
  - name: a
    uses: json.parse
    with: {text: "{"}
    on_error: continue
  - {name: b, run: "return {n = #state.__errors__}"}
  - {name: c, run: "return {__errors__ = tea.null}"}
`, nil, map[string]any{"n": int64(1), "__errors__": nil}},
		{"switch", `
nodes:
  - {name: a}
  - {name: x, run: "return {went = 'x'}"}
  - {name: y, run: "return {went = 'y'}"}
edges:
  - from: a
    condition: |
      if state.v > 1 then return "left" end
      return "right"
    targets: {left: x, right: y}
  - {from: x, to: END}
  - {from: y, to: END}
`, map[string]any{"v": int64(2)}, map[string]any{"v": int64(2), "went": "x"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			wantState(t, run(t, test.text, host.RunOptions{Input: test.input}), test.want)
		})
	}
}

func TestGoFunctionAsAction(t *testing.T) {
	t.Parallel()
	double := host.Func("math.double", "Doubles n.", func(_ context.Context, p map[string]any) (any, error) {
		n, ok := p["n"].(int64)
		if !ok {
			return nil, fmt.Errorf("n is not an integer")
		}
		return map[string]any{"n": 2 * n}, nil
	})
	res := run(t, "nodes: [{name: a, uses: math.double, with: {n: '{{ state.n }}'}}]", host.RunOptions{Input: map[string]any{"n": 21}}, double)
	wantState(t, res, map[string]any{"n": int64(42)})
}

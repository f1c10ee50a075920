package engine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/graph"
	tea "github.com/the-edge-agent/tea/sdk"
)

func TestStatesOfFinishedRuns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text  string
		input map[string]any
		want  map[string]any
	}{
		"results become state": {
			`nodes: [{name: object, run: "return {a = 1, success = true}"}, {name: list, run: "return {1, 2}"}, {name: nothing, run: ""}, {name: number, run: "return 3"}]`,
			nil,
			map[string]any{"a": int64(1), "list": []any{int64(1), int64(2)}, "number": int64(3)},
		},
		"outputs": {
			`nodes: [{name: key, uses: test.echo, with: {n: 1}, output: whole}, {name: map, uses: test.echo, with: {n: "{{ whole.n + 1 }}"}, output: {m: "{{ result.n }}", old: "{{ nodes.key.n }}"}}, {name: none, uses: test.echo, with: {x: 1}, output: {}}]`,
			nil,
			map[string]any{"whole": map[string]any{"n": int64(1)}, "m": int64(2), "old": int64(1)},
		},
		"input, defaults and initial state": {
			"state_schema: {a: {type: int, default: 1}, b: {type: int, default: 1}}\ninitial_state: {b: 2, c: 2}\nnodes: [{name: n}]",
			map[string]any{"c": int64(3)},
			map[string]any{"a": int64(1), "b": int64(2), "c": int64(3)},
		},
		"a condition that does not hold": {
			`nodes: [{name: a, if: state.go, run: "return {a = 1}"}, {name: b, run: "return {b = 1}"}]`,
			nil,
			map[string]any{"b": int64(1)},
		},
		"goto": {
			`nodes: [{name: a, run: "return {n = (state.n or 0) + 1}", goto: [{if: "state.n < 3", to: a}, {to: c}]}, {name: b, run: "return {b = 1}"}, {name: c, run: "return {c = result}", goto: END}]`,
			nil,
			map[string]any{"n": int64(3)},
		},
		"edges": {
			"nodes: [{name: a, run: 'return {x = 7}'}, {name: low, run: 'return {way = \"low\"}'}, {name: high, run: 'return {way = \"high\"}'}]\nedges: [{from: a, to: low, when: state.x < 5}, {from: a, to: high, when: state.x > 5}, {from: low, to: END}, {from: high, to: END}]",
			nil,
			map[string]any{"x": int64(7), "way": "high"},
		},
		"a switch": {
			"nodes: [{name: a}, {name: l, run: 'return {way = 1}'}, {name: r, run: 'return {way = 2}'}]\nedges: [{from: a, condition: \"return 'right'\", targets: {left: l, right: r}}, {from: l, to: END}, {from: r, to: END}]",
			nil,
			map[string]any{"way": int64(2)},
		},
		"a guarded start": {
			"nodes: [{name: a, run: 'return {way = 1}'}, {name: b, run: 'return {way = 2}'}]\nedges: [{from: START, to: a, when: state.first}, {from: START, to: b}, {from: a, to: END}, {from: b, to: END}]",
			nil,
			map[string]any{"way": int64(2)},
		},
		"a loop": {
			`nodes: [{name: l, type: while_loop, condition: "(state.n or 0) < 3", max_iterations: 9, body: [{name: i, run: "return {n = (state.n or 0) + 1}"}], output: {passes: "{{ result.iterations }}"}}]`,
			nil,
			map[string]any{"n": int64(3), "passes": int64(3)},
		},
		"a loop that stops at its limit": {
			`nodes: [{name: l, type: while_loop, condition: "true", max_iterations: 2, on_max: stop, body: [{name: i, run: "return {n = (state.n or 0) + 1}"}]}]`,
			nil,
			map[string]any{"n": int64(2)},
		},
		"steps": {
			`nodes: [{name: s, steps: [{name: one, run: "return {a = 1}"}, {name: two, run: "return {b = state.a + 1}"}]}]`,
			nil,
			map[string]any{"a": int64(1), "b": int64(2)},
		},
		"a subgraph": {
			`nodes: [{name: s, subgraph: sub.yaml, input: {n: "{{ state.k }}"}, output: {out: "{{ result.m }}"}}]`,
			map[string]any{"k": int64(4)},
			map[string]any{"k": int64(4), "out": int64(8)},
		},
		"a workflow that an action runs": {
			`nodes: [{name: s, uses: test.run, with: {path: sub.yaml}, output: {out: "{{ result.m }}"}}]`,
			nil,
			map[string]any{"out": int64(2)},
		},
		"a fallback": {
			"nodes: [{name: a, uses: test.fail, fallback: c}, {name: b, run: 'return {b = 1}', goto: END}, {name: c, run: 'return {c = 1}', goto: END}]",
			nil,
			map[string]any{"c": int64(1)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const sub = "state_schema: {n: {type: int, default: 1}}\nnodes: [{name: x, run: 'return {m = state.n * 2}'}]"
			f := newFlow(t, c.text, nil, "sub.yaml", sub)
			load := func(o *Options) {
				o.Input = c.input
				o.LoadGraph = func(_, name string) (*graph.Graph, error) { return f.compile(name, []string{"sub.yaml", sub}), nil }
			}
			res := f.run(load)
			if res.Status != flow.Done || res.Err != nil {
				t.Fatalf("%s: %v", res.Status, res.Err)
			}
			if diff := cmp.Diff(c.want, res.State); diff != "" {
				t.Error(diff)
			}
			f.samePlayedBack(res.State, load)
		})
	}
}

// samePlayedBack checks that the records alone lead to a state, with no call of an
// action.
func (f *testFlow) samePlayedBack(want map[string]any, change func(*Options)) {
	f.t.Helper()
	f.calls = nil
	o := f.options()
	change(&o)
	o.Input = nil
	if got, err := StateAt(f.t.Context(), o); err != nil || !cmp.Equal(want, got) {
		f.t.Errorf("StateAt: %v: %s", err, cmp.Diff(want, got))
	}
	if err := Fits(f.t.Context(), o); err != nil {
		f.t.Errorf("Fits: %v", err)
	}
	if res, err := Execute(f.t.Context(), o); err != nil || res.Status != flow.Done || !cmp.Equal(want, res.State) || len(f.calls) > 0 {
		f.t.Errorf("a second resume: %v, %v; calls %v", res, err, f.calls)
	}
}

func TestFailuresOfWorkflows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		kind tea.ErrorType
		want string
	}{
		"an action":          {"nodes: [{name: a, uses: test.fail}]", tea.ConnectionError, "refused"},
		"Lua":                {"nodes: [{name: a, run: 'error(\"bad\")'}]", tea.InternalError, "bad"},
		"no edge":            {"nodes: [{name: a, run: 'return {x = 1}'}, {name: b}]\nedges: [{from: a, to: b, when: state.x > 1}]", NoMatchingEdge, `no edge from "a" matches: tried state.x > 1 = false`},
		"no goto":            {"nodes: [{name: a, goto: [{if: 'false', to: a}]}]", NoMatchingEdge, "tried false = false"},
		"no target":          {"nodes: [{name: a}, {name: b}]\nedges: [{from: a, condition: \"return 'left'\", targets: {right: b}}]", NoMatchingEdge, `returned "left", which is not one of its targets (right)`},
		"a switch on null":   {"nodes: [{name: a}, {name: b}]\nedges: [{from: a, condition: 'return nil', targets: {right: b}}]", NoMatchingEdge, "= null"},
		"a condition":        {"nodes: [{name: a, if: 'state.x.y.z > 1'}]", ConditionEvaluation, "the condition"},
		"a template":         {"nodes: [{name: a, uses: test.echo, with: {x: '{{ 1 / 0 }}'}}]", tea.ValidationError, "zero"},
		"a loop without end": {"nodes: [{name: a, type: while_loop, condition: 'true', max_iterations: 2, body: [{name: b}]}]", tea.BudgetExceeded, "reached max_iterations (2)"},
		"steps without end":  {"config: {max_steps: 5}\nnodes: [{name: a, goto: a}]", tea.BudgetExceeded, "config.max_steps (5)"},
		"items":              {"nodes: [{name: a, type: dynamic_parallel, items: '{{ 3 }}', steps: [{run: ''}]}]", tea.ValidationError, "items must be a list, got int"},
		"too many items":     {"config: {max_items: 2}\nnodes: [{name: a, type: dynamic_parallel, items: [1, 2, 3], steps: [{run: ''}]}]", tea.ResourceExhausted, "config.max_items allows 2"},
		"a type":             {"state_schema: {n: int}\nnodes: [{name: a, run: 'return {n = \"x\"}'}]", tea.ValidationError, "n"},
		"a step":             {"nodes: [{name: a, steps: [{name: b, run: 'return {x = 1}'}, {name: c, uses: test.fail}]}]", tea.ConnectionError, "refused"},
		"no workflow.run":    {"nodes: [{name: a, uses: test.run, with: {path: x.yaml}}]", tea.DependencyMissing, "not available"},
		"a nil response":     {"nodes: [{name: a, uses: test.nothing}]", tea.InternalError, "neither a result nor an error"},
		"an unknown action":  {"nodes: [{name: a, uses: test.gone}]", tea.NotFound, "unknown action"},
		"itself":             {"nodes: [{name: a, uses: test.again}]", tea.ValidationError, "more than 64 deep"},
		"a bad key":          {"nodes: [{name: a, uses: test.keyed, with: {key: 'a/b'}}]", tea.ValidationError, "contains '/'"},
		"a long key":         {"nodes: [{name: a, uses: test.keyed, with: {key: '" + strings.Repeat("k", 101) + "'}}]", tea.ValidationError, "has 101 characters"},
		"usage":              {"nodes: [{name: a, uses: test.usage, with: {tokens: -1}}]", tea.ValidationError, "must not be negative"},
		"a failing fallback": {"nodes: [{name: a, uses: test.fail, fallback: b}, {name: b, run: 'error(\"worse\")'}]", tea.InternalError, "worse"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			actions := fakeActions{
				"test.gone":    nil,
				"test.nothing": func(context.Context, *tea.Request, map[string]any) (any, error) { return nil, nil },
				"test.again": func(ctx context.Context, req *tea.Request, _ map[string]any) (any, error) {
					return req.Host.Invoke(ctx, "test.again", nil)
				},
				"test.keyed": func(ctx context.Context, req *tea.Request, with map[string]any) (any, error) {
					return req.Invoke(ctx, tea.Invocation{Action: "test.echo", Key: with["key"].(string)})
				},
				"test.usage": func(ctx context.Context, req *tea.Request, with map[string]any) (any, error) {
					return nil, req.Usage(ctx, tea.Usage{Tokens: with["tokens"].(int64)})
				},
			}
			f := newFlow(t, c.text, actions, "sub.yaml", "nodes: [{name: x}]")
			delete(f.actions, "test.gone")
			res := f.run(func(o *Options) {
				next := o.Middleware
				o.Middleware = func(ctx context.Context, req *tea.Request, invoke InvokeFunc) (*tea.Response, error) {
					res, err := next(ctx, req, invoke)
					if req.Action == "test.nothing" {
						return nil, err
					}
					return res, err
				}
			})
			wantFailure(t, res, c.kind, c.want)
		})
	}
}

func TestAFailedStepDoesNotChangeTheState(t *testing.T) {
	t.Parallel()
	f := newFlow(t, "nodes: [{name: a, steps: [{name: b, run: 'return {x = 1}'}, {name: c, uses: test.fail}], on_error: continue}, {name: d, run: 'return {failed = #state.__errors__}'}]", nil)
	res := f.run()
	list, _ := res.State["__errors__"].([]any)
	if res.Status != flow.Done || res.State["x"] != nil || res.State["failed"] != int64(1) || len(list) != 1 || len(res.Failures) != 1 {
		t.Errorf("%s: %v, %v, failures %v", res.Status, res.State, res.Err, res.Failures)
	}
	f.samePlayedBack(res.State, func(*Options) {})
}

func TestBudgetsStopARun(t *testing.T) {
	t.Parallel()
	const loop = "nodes: [{name: a, uses: test.cost, goto: a}]\n"
	for name, c := range map[string]struct {
		text  string
		limit string
		calls int
	}{
		"steps":      {loop + "budget: {steps: 3}", "steps", 3},
		"tokens":     {loop + "budget: {tokens: 25}", "tokens", 3},
		"usd":        {loop + "budget: {usd: 1.2}", "usd", 3},
		"tool calls": {"nodes: [{name: a, run: \"for i = 1, 9 do tea.action('test.echo', {}) end\"}]\nbudget: {tool_calls: 4}", "tool_calls", 4},
		"reports":    {"nodes: [{name: a, uses: test.reports, goto: a}]\nbudget: {tokens: 25}", "tokens", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFlow(t, c.text, fakeActions{
				"test.cost": func(context.Context, *tea.Request, map[string]any) (any, error) {
					return map[string]any{"usage": map[string]any{"total_tokens": 10}, "cost_usd": 0.5}, nil
				},
				"test.reports": func(ctx context.Context, req *tea.Request, _ map[string]any) (any, error) {
					return nil, req.Usage(ctx, tea.Usage{Tokens: 10})
				},
			})
			res := f.run()
			var budget *flow.BudgetError
			if res.Status != flow.Stopped || !errors.As(res.Err, &budget) || budget.Limit != c.limit || len(f.calls) != c.calls {
				t.Errorf("%s: %v after %d calls", res.Status, res.Err, len(f.calls))
			}
		})
	}
}

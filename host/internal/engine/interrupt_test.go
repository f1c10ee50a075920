package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/host/internal/graph"
	tea "github.com/the-edge-agent/tea/sdk"
)

func ids(pending []flow.Interrupt) string {
	var list []string
	for _, i := range pending {
		list = append(list, i.ID)
	}
	return strings.Join(list, " ")
}

// Runs stop at interrupts, and resumes continue there: each step is the input or the
// answers of one resume, and what waits after it.
func TestInterruptsAndResumes(t *testing.T) {
	t.Parallel()
	type step struct {
		answers map[string]any
		input   map[string]any
		pending string // "" = done
	}
	const ask = "uses: test.ask, with: {question: 'Go on?'}"
	for name, c := range map[string]struct {
		text  string
		steps []step
		calls string
		state map[string]any
	}{
		"before a node": {
			"nodes: [{name: a, uses: test.echo, with: {a: 1}}, {name: b, interrupt: before, uses: test.echo, with: {b: '{{ a + 1 }}'}}]",
			[]step{{nil, nil, "b:before"}, {nil, map[string]any{"a": int64(5)}, ""}},
			"test.echo at a\ntest.echo at b",
			map[string]any{"a": int64(5), "b": int64(6)},
		},
		"after a node": {
			"nodes: [{name: a, interrupt: after, uses: test.echo, with: {a: 1}, goto: [{if: 'state.a > 1', to: END}, {to: b}]}, {name: b, uses: test.echo, with: {b: 1}}]",
			[]step{{nil, nil, "a:after"}, {map[string]any{"a:after": map[string]any{"a": int64(2)}}, nil, ""}},
			"test.echo at a",
			map[string]any{"a": int64(2)},
		},
		"a question": {
			"nodes: [{name: a, " + ask + ", output: {answer: '{{ result.answer }}'}}, {name: b, uses: test.echo, with: {b: 1}}]",
			[]step{{nil, nil, "a:ask"}, {map[string]any{"a:ask": "yes"}, nil, ""}},
			"test.ask at a\ntest.ask at a\ntest.echo at b",
			map[string]any{"answer": "yes", "b": int64(1)},
		},
		"in branches": {
			"nodes: [{name: s}, {name: a, " + ask + ", output: {a: '{{ result.answer }}'}}, {name: b, " + ask + ", output: {b: '{{ result.answer }}'}}, {name: c, uses: test.echo, with: {c: 1}}]\nedges: [{from: s, parallel: [a, b, c]}]",
			[]step{{nil, nil, "s>a/a:ask s>b/b:ask"}, {map[string]any{"s>b/b:ask": "no"}, nil, "s>a/a:ask"}, {map[string]any{"s>a/a:ask": "yes"}, nil, ""}},
			"",
			map[string]any{"a": "yes", "b": "no", "c": int64(1)},
		},
		"in items, loops, steps and subgraphs": {
			"nodes: [{name: m, type: dynamic_parallel, items: [1, 2], steps: [{name: q, " + ask + ", output: {}}]}, " +
				"{name: l, type: while_loop, condition: '(state.n or 0) < 1', max_iterations: 3, body: [{name: q, " + ask + ", output: {}}, {name: i, run: 'return {n = (state.n or 0) + 1}'}]}, " +
				"{name: t, steps: [{name: q, " + ask + ", output: {}}]}, {name: g, subgraph: sub.yaml, output: {}}]",
			[]step{
				{nil, nil, "m[0]/q:ask m[1]/q:ask"},
				{map[string]any{"m[0]/q:ask": "yes", "m[1]/q:ask": "no"}, nil, "l[0]/q:ask"},
				{map[string]any{"l[0]/q:ask": "yes"}, nil, "t/q:ask"},
				{map[string]any{"t/q:ask": "yes"}, nil, "g/q:ask"},
				{map[string]any{"g/q:ask": "yes"}, nil, ""},
			},
			"",
			map[string]any{"n": int64(1)},
		},
		"inside a workflow that an action runs": {
			"nodes: [{name: w, uses: test.run, with: {path: sub.yaml}, output: {out: '{{ result.answer }}'}}]",
			[]step{{nil, nil, "w/q:ask"}, {map[string]any{"w/q:ask": "yes"}, nil, ""}},
			"",
			map[string]any{"out": "yes"},
		},
		"from Lua": {
			"nodes: [{name: w, run: \"return {out = tea.action('test.ask', {question = 'x'}).answer}\"}]",
			[]step{{nil, nil, "*"}, {map[string]any{"*": "yes"}, nil, ""}},
			"",
			map[string]any{"out": "yes"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const sub = "nodes: [{name: q, " + ask + "}]"
			f := newFlow(t, c.text, nil, "sub.yaml", sub)
			first := ""
			for n, s := range c.steps {
				answers := map[string]any{}
				for id, v := range s.answers {
					answers[strings.Replace(id, "*", first, 1)] = v
				}
				res := f.run(func(o *Options) {
					o.Answers, o.Input = answers, s.input
					o.LoadGraph = func(_, name string) (*graph.Graph, error) { return f.compile(name, []string{"sub.yaml", sub}), nil }
				})
				got := ids(res.Pending)
				if s.pending == "*" {
					first = got
					got = "*"
				}
				if res.Status == flow.Failed || got != s.pending || (res.Status == flow.Done) != (s.pending == "") {
					t.Fatalf("step %d: %s, waits at %q: %v; want %q", n, res.Status, got, res.Err, s.pending)
				}
				if res.Status == flow.Done {
					if diff := cmp.Diff(c.state, res.State); diff != "" {
						t.Error(diff)
					}
				} else if f.journal.synced != len(f.journal.records) {
					t.Errorf("step %d: %d of %d records are durable", n, f.journal.synced, len(f.journal.records))
				}
			}
			if c.calls != "" {
				wantLines(t, "calls", f.calls, c.calls)
			}
		})
	}
}

func TestAnswersAtOnce(t *testing.T) {
	t.Parallel()
	broken := errors.New("the terminal is gone")
	for name, c := range map[string]struct {
		answer any
		err    error
		status flow.Status
	}{
		"answered":     {"yes", nil, flow.Done},
		"nobody there": {nil, flow.ErrNobody, flow.Waiting},
		"failed":       {nil, broken, flow.Failed},
		"wrong":        {"maybe", nil, flow.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFlow(t, "nodes: [{name: a, uses: test.ask, with: {question: 'Go on?'}, output: {}}]", nil)
			res := f.run(func(o *Options) {
				o.Ask = func(_ context.Context, i flow.Interrupt) (any, error) {
					if i.Question != "Go on?" {
						t.Errorf("asked %q", i.Question)
					}
					return c.answer, c.err
				}
			})
			if res.Status != c.status {
				t.Errorf("%s: %v", res.Status, res.Err)
			}
		})
	}
}

func TestAQuestionWithADeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		actions := fakeActions{"test.wait": func(ctx context.Context, req *tea.Request, _ map[string]any) (any, error) {
			_, late, err := req.Host.(*callHost).Ask(ctx, Question{Text: "?", Deadline: time.Minute, OnTimeout: "deny"})
			return map[string]any{"late": late}, err
		}}
		const text = "nodes: [{name: a, uses: test.wait}]"
		f := newFlow(t, text, actions)
		began := time.Now()
		res := f.run(func(o *Options) {
			o.Ask = func(ctx context.Context, _ flow.Interrupt) (any, error) { <-ctx.Done(); return nil, ctx.Err() }
		})
		if res.Status != flow.Done || res.State["late"] != true || time.Since(began) != time.Minute {
			t.Errorf("%s after %v: %v, %v", res.Status, time.Since(began), res.State, res.Err)
		}
		// A run that waits is not asked again after the deadline.
		f = newFlow(t, text, actions)
		res = f.run()
		if len(res.Pending) != 1 || res.Pending[0].Deadline.Sub(res.Pending[0].AskedAt) != time.Minute || res.Pending[0].OnTimeout != "deny" {
			t.Fatalf("%+v", res.Pending)
		}
		<-time.After(time.Hour)
		if res = f.run(); res.Status != flow.Done || res.State["late"] != true {
			t.Errorf("%s: %v, %v", res.Status, res.State, res.Err)
		}
	})
}

// However often a run is killed, a resume calls no action whose node has a record, and
// ends in the same state.
func TestAResumeFromEveryRecord(t *testing.T) {
	t.Parallel()
	const text = `
state_schema: {log: {type: list, reducer: append, default: []}}
nodes:
  - {name: s, uses: test.note, with: {log: s}}
  - {name: a, uses: test.note, with: {log: a}}
  - {name: b, steps: [{name: b1, uses: test.note, with: {log: b1}}, {name: b2, uses: test.note, with: {log: b2}}]}
  - {name: j, uses: test.note, with: {log: "{{ parallel_results | length }}"}}
  - {name: m, type: dynamic_parallel, items: [1, 2], action: {uses: test.note, with: {log: "{{ item }}"}}}
  - {name: l, type: while_loop, condition: "(state.n or 0) < 2", max_iterations: 3, body: [{name: i, uses: test.note, with: {n: "{{ (state.n | default(0)) + 1 }}"}}]}
  - {name: c, if: "false"}
  - {name: f, uses: test.fail, on_error: continue}
  - {name: g, uses: test.fail, fallback: h}
  - {name: k, uses: test.note, with: {log: never}}
  - {name: h, uses: test.note, with: {log: h}, goto: END}
edges: [{from: s, parallel: [a, b], fan_in: j}, {from: a, to: j}, {from: b, to: j}]
`
	note := fakeActions{"test.note": func(_ context.Context, _ *tea.Request, with map[string]any) (any, error) { return with, nil }}
	whole := newFlow(t, text, note)
	want := whole.run()
	if want.Status != flow.Done {
		t.Fatal(want.Err)
	}
	delete(want.State, errorsKey)
	for n := range whole.journal.records {
		f := newFlow(t, text, note)
		f.journal.records = append([]checkpoint.Record{}, whole.journal.records[:n]...)
		res := f.run()
		delete(res.State, errorsKey)
		if res.Status != flow.Done || !cmp.Equal(want.State, res.State) {
			t.Fatalf("after %d records: %s: %v\n%s", n, res.Status, res.Err, cmp.Diff(want.State, res.State))
		}
		for _, r := range whole.journal.records[:n] {
			for _, call := range f.calls {
				if r.Kind == "node" && strings.HasSuffix(call, " at "+r.Path) {
					t.Errorf("after %d records: %s was repeated", n, call)
				}
			}
		}
	}
}

func TestAFullDiskEndsTheRun(t *testing.T) {
	t.Parallel()
	const text = "nodes: [{name: a, uses: test.echo, with: {x: 1}, on_error: continue}, {name: b, uses: test.echo, with: {y: 1}}]"
	for full := 1; full < 4; full++ {
		f := newFlow(t, text, nil)
		f.journal.full = full
		if _, err := Execute(t.Context(), f.options()); !errors.Is(err, errFull) {
			t.Errorf("full after %d records: %v", full, err)
		}
		f.journal.full = 0
		if res := f.run(); res.Status != flow.Done || len(res.State) != 2 {
			t.Errorf("full after %d records: resumed to %s: %v", full, res.Status, res.Err)
		}
	}
}

func TestRecordsThatNoLongerFit(t *testing.T) {
	t.Parallel()
	const old = "nodes: [{name: a, run: 'return {x = 1}', goto: [{if: 'true', to: b}, {to: END}]}, {name: b, interrupt: before}]"
	for name, c := range map[string]struct{ text, err string }{
		"the target is gone":  {"nodes: [{name: a, goto: [{if: 'true', to: c}]}, {name: c}]", "the node b, which the checkpoint refers to, is no longer in the workflow"},
		"a node is gone":      {"nodes: [{name: z, goto: b}, {name: b}]", "no longer reaches a"},
		"another node behind": {old[:len(old)-1] + ", {name: c}]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFlow(t, old, nil)
			if res := f.run(); res.Status != flow.Waiting {
				t.Fatal(res.Err)
			}
			changed := newFlow(t, c.text, nil)
			changed.journal = f.journal
			err := Fits(t.Context(), changed.options())
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %v, want %q", err, c.err)
			}
			if res := changed.run(func(o *Options) { o.Relaxed = true }); res.Status != flow.Done {
				t.Errorf("with force: %s: %v", res.Status, res.Err)
			}
		})
	}
}

func TestInputThatChangesNothing(t *testing.T) {
	t.Parallel()
	f := newFlow(t, "nodes: [{name: a, run: 'return {x = 1}'}]", nil)
	f.run()
	o := f.options()
	o.Input = map[string]any{"x": int64(2)}
	if _, err := Execute(t.Context(), o); !errors.Is(err, ErrInputUnused) {
		t.Errorf("got %v", err)
	}
}

func TestGivenValuesAreCheckedBeforeAnythingRuns(t *testing.T) {
	t.Parallel()
	const sub = "state_schema: {deep: int}\nnodes: [{name: q, interrupt: before}]"
	f := newFlow(t, "state_schema: {n: int}\nnodes: [{name: m, type: dynamic_parallel, items: [1], steps: [{name: g, subgraph: sub.yaml}]}, {name: l, type: while_loop, condition: 'false', max_iterations: 1, body: [{name: x}]}]", nil, "sub.yaml", sub)
	res := f.run()
	if ids(res.Pending) != "m[0]/g/q:before" {
		t.Fatalf("waits at %q", ids(res.Pending))
	}
	for _, c := range []struct {
		key  string
		v    any
		want bool
	}{{"n", int64(1), true}, {"n", "x", false}, {"deep", "x", false}, {"other", "x", true}} {
		values := map[string]any{c.key: c.v}
		if err := CheckInput(f.graph, values, res.Pending); (err == nil) != c.want {
			t.Errorf("input %v: %v", values, err)
		}
	}
	for _, c := range []struct {
		v    any
		want bool
	}{{true, true}, {map[string]any{"deep": int64(1)}, true}, {map[string]any{"deep": "x"}, false}} {
		if err := CheckAnswer(f.graph, res.Pending[0], c.v); (err == nil) != c.want {
			t.Errorf("answer %v: %v", c.v, err)
		}
	}
}

func TestACanceledRunStopsAndResumes(t *testing.T) {
	t.Parallel()
	stopped := errors.New("stopped by a signal")
	for name, text := range map[string]string{
		"a node":  "nodes: [{name: a, uses: test.echo, with: {a: 1}}, {name: b, uses: test.once}]",
		"a loop":  "nodes: [{name: a, uses: test.echo, with: {a: 1}}, {name: l, type: while_loop, condition: 'not state.b', max_iterations: 3, body: [{name: b, uses: test.once}]}]",
		"an item": "nodes: [{name: a, uses: test.echo, with: {a: 1}}, {name: m, type: dynamic_parallel, items: [1], steps: [{name: b, uses: test.once}]}]",
		"a retry": "nodes: [{name: a, uses: test.echo, with: {a: 1}}, {name: b, uses: test.once, retry: {max_retries: 3, backoff_base_ms: 1000000}}]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			first := true
			f := newFlow(t, text, fakeActions{"test.once": func(ctx context.Context, _ *tea.Request, _ map[string]any) (any, error) {
				if first {
					first = false
					cancel(stopped)
					return nil, &tea.Error{Type: tea.ConnectionError, Message: "canceled", Retryable: true}
				}
				return map[string]any{"b": true}, nil
			}})
			res := f.runIn(ctx)
			if res.Status != flow.Stopped || !errors.Is(res.Err, stopped) || res.State["a"] != int64(1) {
				t.Fatalf("%s: %v, %v", res.Status, res.Err, res.State)
			}
			f.calls = nil
			if res = f.run(); res.Status != flow.Done || res.State["b"] != true || len(f.calls) != 1 {
				t.Errorf("%s: %v, %v; calls %v", res.Status, res.Err, res.State, f.calls)
			}
		})
	}
}

func TestStepsAreNotCountedTwice(t *testing.T) {
	t.Parallel()
	f := newFlow(t, "nodes: [{name: a}, {name: b, interrupt: before}, {name: c, interrupt: before}]", nil)
	for i, want := range []string{"waiting 2", "waiting 3", "done 3"} {
		res := f.run()
		if got := fmt.Sprintf("%s %d", res.Status, res.Usage.Steps); got != want {
			t.Errorf("run %d: %s, want %s", i, got, want)
		}
	}
}

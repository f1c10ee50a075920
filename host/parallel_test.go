package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// summary is a join that keeps what the tests look at.
const summary = `
    run: |
      local out = {}
      for i, p in ipairs(parallel_results) do
        out[i] = p.branch .. " " .. tostring(p.success) .. " " .. (p.error_type or "-") .. " " .. tostring(p.timeout) .. " " .. p.retry_count .. " " .. (p.circuit_state or "-")
      end
      return {out = out}
`

func TestBranchPolicies(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       []any
	}{
		{"a failed branch is a result", `
nodes:
  - {name: a}
  - {name: ok}
  - {name: bad, uses: json.parse, with: {text: "{"}}
  - name: join` + summary + `
edges: [{from: a, parallel: [ok, bad], fan_in: join}]
`, []any{"ok true - false 0 -", "bad false validation_error false 0 -"}},
		{"time-out", `
nodes:
  - {name: a}
  - {name: slow, uses: time.sleep, with: {seconds: 3600}}
  - {name: ok}
  - name: join` + summary + `
edges: [{from: a, parallel: [slow, ok], fan_in: join}]
config: {parallel: {timeout_seconds: 2}} # enough for the other branch
`, []any{"slow false timeout true 0 -", "ok true - false 0 -"}},
		{"retry of a whole branch", `
nodes:
  - {name: a, parallel: {retry: {max_retries: 2, base_delay: 0.001, retry_on: [validation_error]}}}
  - {name: bad, uses: json.parse, with: {text: "{"}}
  - {name: ok}
  - name: join` + summary + `
edges: [{from: a, parallel: [bad, ok], fan_in: join}]
`, []any{"bad false validation_error false 2 -", "ok true - false 0 -"}},
		{"circuit breaker", `
initial_state: {round: 0}
nodes:
  - {name: a, run: "return {round = state.round + 1}"}
  - {name: bad, uses: json.parse, with: {text: "{"}}
  - {name: ok}
  - name: join` + summary + `
    goto: [{if: "state.round < 3", to: a}, {to: __end__}]
edges: [{from: a, parallel: [bad, ok], fan_in: join}]
config: {parallel: {circuit_breaker: {failure_threshold: 2, reset_timeout: 3600, half_open_max_calls: 1}}}
`, []any{"bad false circuit_open false 0 open", "ok true - false 0 closed"}},
		{"guards choose the branches", `
initial_state: {b: true}
nodes:
  - {name: a}
  - {name: b}
  - {name: c}
  - {name: d}
  - name: join` + summary + `
edges:
  - {from: a, to: b, type: parallel, fan_in: join, when: state.b}
  - {from: a, to: c, type: parallel, fan_in: join, when: state.c}
  - {from: a, to: d, type: parallel, fan_in: join}
`, []any{"b true - false 0 -", "d true - false 0 -"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			res := run(t, test.text, host.RunOptions{})
			if res.Status != flow.Done {
				t.Fatalf("status = %s, err = %v", res.Status, res.Err)
			}
			if diff := cmp.Diff(any(test.want), res.State["out"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFailFastEndsTheOthers(t *testing.T) {
	t.Parallel()
	res := run(t, `
nodes:
  - {name: a, parallel: {fail_fast: true}}
  - {name: slow, uses: time.sleep, with: {seconds: 3600}}
  - {name: bad, uses: json.parse, with: {text: "{"}}
  - {name: join}
edges: [{from: a, parallel: [slow, bad], fan_in: join}]
`, host.RunOptions{})
	var node *flow.NodeError
	if res.Status != flow.Failed || !errors.As(res.Err, &node) || node.Path != "a>bad/bad" {
		t.Fatalf("status = %s, err = %v", res.Status, res.Err)
	}
}

func TestFailureWithoutFanInFailsTheRun(t *testing.T) {
	t.Parallel()
	res := run(t, `
nodes:
  - {name: a}
  - {name: ok, run: "return {ok = true}"}
  - {name: bad, uses: json.parse, with: {text: "{"}}
edges: [{from: a, parallel: [ok, bad]}, {from: ok, to: END}, {from: bad, to: END}]
`, host.RunOptions{})
	if res.Status != flow.Failed || !strings.Contains(res.Err.Error(), `"a>bad/bad"`) {
		t.Fatalf("status = %s, err = %v", res.Status, res.Err)
	}
}

func TestBranchesShareUntilTheyWrite(t *testing.T) {
	t.Parallel()
	res := run(t, `
initial_state: {list: [1, 2]}
nodes:
  - {name: a}
  - {name: b, run: "table.insert(state.list, 3); return {list = state.list}"}
  - {name: c, run: "return {n = #state.list}"}
  - name: join
    run: "return {b = #parallel_results[1].state.list, c = parallel_results[2].state.n, here = #state.list}"
edges: [{from: a, parallel: [b, c], fan_in: join}]
`, host.RunOptions{})
	wantState(t, res, map[string]any{"list": []any{int64(1), int64(2)}, "b": int64(3), "c": int64(2), "here": int64(2)})
}

func TestConcurrencyLimit(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now, most := 0, 0
	gate := host.Func("test.gate", "", func(context.Context, map[string]any) (any, error) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		defer func() { mu.Lock(); now--; mu.Unlock() }()
		return nil, nil
	})
	res := run(t, `
nodes:
  - name: each
    type: dynamic_parallel
    items: [1, 2, 3, 4, 5, 6, 7, 8, 9]
    max_concurrency: 2
    action: {uses: test.gate}
    fan_in: join
  - {name: join, run: "return {n = #parallel_results}"}
`, host.RunOptions{}, gate)
	wantState(t, res, map[string]any{"n": int64(9)})
	if most > 2 {
		t.Errorf("%d branches ran at once", most)
	}
}

func TestEventsPerBranchAreTheSameEveryTime(t *testing.T) {
	t.Parallel()
	text := `
nodes:
  - {name: a}
  - {name: b, run: "return {x = 1}"}
  - {name: b2, run: "return {x = 2}"}
  - {name: c, run: "return {x = 3}"}
  - {name: c2, run: "return {x = 4}"}
  - {name: join}
edges:
  - {from: a, parallel: [b, c], fan_in: join}
  - {from: b, to: b2}
  - {from: b2, to: join}
  - {from: c, to: c2}
  - {from: c2, to: join}
`
	var first map[string][]string
	for range 20 {
		events := map[string][]string{}
		run(t, text, host.RunOptions{Events: func(e flow.Event) {
			branch, _, _ := strings.Cut(e.Path, "/")
			events[branch] = append(events[branch], string(e.Type)+" "+e.Path)
		}})
		if first == nil {
			first = events
		}
		if diff := cmp.Diff(first, events); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestBranchesStartInTheOrderWritten(t *testing.T) {
	t.Parallel()
	const items = 200
	var want, events, callbacks []string
	for i := range items {
		want = append(want, fmt.Sprintf("each[%d]", i))
	}
	run(t, fmt.Sprintf(`
nodes:
  - {name: each, type: dynamic_parallel, items: "{{ range(%d) }}", action: {uses: json.parse, with: {text: "{}"}}, fan_in: join}
  - {name: join}
`, items), host.RunOptions{
		Events: func(e flow.Event) {
			if e.Type == flow.EventBranchStart {
				events = append(events, e.Path)
			}
		},
		Callbacks: flow.Callbacks{BranchStart: func(path, _ string) { callbacks = append(callbacks, path) }},
	})
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(want, callbacks); diff != "" {
		t.Errorf("callbacks: -want +got:\n%s", diff)
	}
}

func TestRetriesAreEventsAndKeepTheirKey(t *testing.T) {
	t.Parallel()
	var keys []string
	var attempts []int
	flaky := tea.Action{Name: "test.flaky", Handle: func(_ context.Context, req *tea.Request) (*tea.Response, error) {
		keys = append(keys, req.IdempotencyKey)
		attempts = append(attempts, req.Attempt)
		if len(keys) < 3 {
			return nil, tea.Errorf(tea.ConnectionError, "not yet")
		}
		return tea.Respond(map[string]any{"n": len(keys)}), nil
	}}
	retries := 0
	res := run(t, `nodes: [{name: a, uses: test.flaky, retry: {max_retries: 3, backoff_base_ms: 1}}]`,
		host.RunOptions{Events: func(e flow.Event) {
			if e.Type == "retry" {
				retries++
			}
		}}, flaky)
	wantState(t, res, map[string]any{"n": int64(3)})
	if diff := cmp.Diff([]int{1, 2, 3}, attempts); diff != "" || retries != 2 || keys[0] != keys[2] || keys[0] == "" {
		t.Errorf("attempts %v, retries %d, keys %v", attempts, retries, keys)
	}
}

func TestMapWithTooManyItemsFailsBeforeItBegins(t *testing.T) {
	t.Parallel()
	res := run(t, `
config: {max_items: 3}
nodes: [{name: each, type: dynamic_parallel, items: [1, 2, 3, 4], steps: [{uses: count.hit, with: {name: x}}]}]
`, host.RunOptions{}, newCounter().action())
	if res.Status != flow.Failed || !strings.Contains(res.Err.Error(), `the map "each" has 4 items; config.max_items allows 3`) || tea.AsError(res.Err).Type != tea.ResourceExhausted {
		t.Errorf("status = %s, err = %v", res.Status, res.Err)
	}
}

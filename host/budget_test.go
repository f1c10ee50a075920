package host_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// caller is an action that calls count.hit twice, then asks somebody.
var caller = tea.Action{Name: "test.caller", Handle: func(ctx context.Context, req *tea.Request) (*tea.Response, error) {
	for _, name := range []string{"one", "two"} {
		if _, err := req.Host.Invoke(ctx, "count.hit", map[string]any{"name": name}); err != nil {
			return nil, err
		}
	}
	if _, err := req.Host.Invoke(ctx, "human.ask", map[string]any{"question": "well?"}); err != nil {
		return nil, err
	}
	return tea.Respond(map[string]any{"ok": true}), nil
}}

func wantBudget(t *testing.T, res *flow.Result, limit string) {
	t.Helper()
	var budget *flow.BudgetError
	if res.Status != flow.Stopped || !errors.As(res.Err, &budget) || budget.Limit != limit {
		t.Fatalf("status = %s, err = %v, want the budget's %s", res.Status, res.Err, limit)
	}
}

func TestToolCallsAreCarriedOverAResume(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
nodes: [{name: a, uses: test.caller}, {name: b, interrupt: before}, {name: c, uses: test.caller}]
budget: {tool_calls: 8}
`, caller)
	res := s.run(host.RunOptions{})
	if res.Status != flow.Waiting {
		t.Fatalf("status = %s, err = %v", res.Status, res.Err)
	}
	if res.Usage.ToolCalls != 2 {
		t.Errorf("tool calls = %d, want the two that were answered", res.Usage.ToolCalls)
	}
	res = s.resume(res.RunID, host.RunOptions{Answers: map[string]any{res.Pending[0].ID: "yes"}})
	wantStatus(t, res, flow.Waiting, "b:before")
	if res.Usage.ToolCalls != 5 { // two were made again
		t.Errorf("tool calls = %d, want 5", res.Usage.ToolCalls)
	}
	res = s.resume(res.RunID, host.RunOptions{})
	if res.Status != flow.Waiting || res.Usage.ToolCalls != 7 {
		t.Fatalf("status = %s, tool calls = %d, err = %v", res.Status, res.Usage.ToolCalls, res.Err)
	}
	wantBudget(t, s.resume(res.RunID, host.RunOptions{}), "tool_calls")
}

func TestSecondsAreCarriedOverAResume(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
nodes: [{name: a, uses: time.sleep, with: {seconds: 3600}}]
budget: {seconds: 0.01}
`)
	res := s.run(host.RunOptions{})
	wantBudget(t, res, "seconds")
	started := 0
	res = s.resume(res.RunID, host.RunOptions{Events: func(e flow.Event) {
		if e.Type == flow.EventNodeStart {
			started++
		}
	}})
	wantBudget(t, res, "seconds")
	if started > 0 {
		t.Errorf("%d nodes were started although the time was used up", started)
	}
}

func TestUsageCountsOnce(t *testing.T) {
	t.Parallel()
	const spend = "'return {usage = {total_tokens = 10}, cost_usd = 0.25}'"
	tests := []struct{ name, text string }{
		{"steps", "nodes: [{name: a, steps: [{run: " + spend + "}, {run: " + spend + "}]}, {name: b, interrupt: before}]"},
		{"branches", "nodes: [{name: s}, {name: a, run: " + spend + "}, {name: c, run: " + spend + "}, {name: b, interrupt: before}]\nedges: [{from: s, parallel: [a, c], fan_in: b}]"},
		{"attempts", `
nodes:
  - name: a
    retry: {max_retries: 1, backoff_base_ms: 1, retry_on: [internal_error]}
    type: while_loop
    condition: "not state.flag"
    max_iterations: 3
    body: [{name: x, run: ` + spend + `}, {name: hit, uses: count.hit, with: {name: hit}, output: flag}]
  - {name: b, interrupt: before}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t, test.text)
			s.c.fail["hit"] = true
			res := s.run(host.RunOptions{})
			wantStatus(t, res, flow.Waiting, "b:before")
			again := s.resume(res.RunID, host.RunOptions{})
			for _, u := range []flow.Usage{res.Usage, again.Usage} {
				if u.Tokens != 20 || u.USD != 0.5 {
					t.Errorf("usage = %+v, want 20 tokens and 0.5 usd", u)
				}
			}
		})
	}
}

func TestUsageOfCallsInsideANodeCounts(t *testing.T) {
	t.Parallel()
	model := host.Func("test.model", "", func(context.Context, map[string]any) (any, error) {
		return map[string]any{"text": "x", "usage": map[string]any{"total_tokens": 10}}, nil
	})
	for name, text := range map[string]string{
		"the result is dropped":   "nodes: [{name: a, run: \"tea.action('test.model', {}); return {}\", goto: a}]\nbudget: {tokens: 25}",
		"the result is handed on": "nodes: [{name: a, run: \"return tea.action('test.model', {})\", goto: a}]\nbudget: {tokens: 25}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := run(t, text, host.RunOptions{}, model)
			wantBudget(t, res, "tokens")
			if res.Usage.Tokens != 30 {
				t.Errorf("tokens = %d, want 30", res.Usage.Tokens)
			}
		})
	}
}

// requester asks a model ten times, 400 tokens each, and stops where the
// budget is spent unless it is stubborn. It counts its requests.
func requester(made *atomic.Int64) tea.Action {
	return tea.Action{Name: "test.requester", Handle: func(ctx context.Context, req *tea.Request) (*tea.Response, error) {
		var p struct{ Rounds int }
		if err := req.Params.Decode(&p); err != nil {
			return nil, err
		}
		for round := 1; round <= p.Rounds && ctx.Err() == nil; round++ {
			made.Add(1)
			if err := req.Usage(ctx, tea.Usage{Tokens: 400, USD: 0.25}); err != nil && p.Rounds == 10 && round < p.Rounds {
				return nil, err
			}
		}
		return tea.Respond(map[string]any{"usage": map[string]any{"total_tokens": 400 * p.Rounds}}), ctx.Err()
	}}
}

func TestBudgetIsCheckedBetweenTheRequestsOfANode(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text, limit string
		requests          int64
	}{
		{"tokens", "nodes: [{name: a, uses: test.requester, with: {rounds: 10}}]\nbudget: {tokens: 1000}", "tokens", 3},
		{"usd", "nodes: [{name: a, uses: test.requester, with: {rounds: 10}}]\nbudget: {usd: 1}", "usd", 4},
		{"failure goes on", "nodes: [{name: a, uses: test.requester, with: {rounds: 10}, on_error: continue}, {name: b}]\nbudget: {tokens: 1000}", "tokens", 3},
		{"retry", "nodes: [{name: a, uses: test.requester, with: {rounds: 10}, retry: {max_retries: 3, backoff_base_ms: 1, retry_on: [budget_exceeded]}}]\nbudget: {tokens: 1000}", "tokens", 3},
		{"called from Lua", "nodes: [{name: a, run: \"pcall(tea.action, 'test.requester', {rounds = 10}); return {}\"}, {name: b}]\nbudget: {tokens: 1000}", "tokens", 3},
		{"errors ignored", "nodes: [{name: a, uses: test.requester, with: {rounds: 1000}}]\nbudget: {tokens: 1000}", "tokens", 4},
		{"next call", "nodes: [{name: a, run: \"for i = 1, 10 do tea.action('test.requester', {rounds = 1}) end\"}]\nbudget: {tokens: 1000}", "tokens", 3},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var made atomic.Int64
			s := newSession(t, test.text, requester(&made))
			res := s.run(host.RunOptions{})
			wantBudget(t, res, test.limit)
			if made.Load() != test.requests || res.Usage.Tokens != 400*test.requests {
				t.Errorf("%d requests, %d tokens; want %d requests of 400", made.Load(), res.Usage.Tokens, test.requests)
			}
			wantBudget(t, s.resume(res.RunID, host.RunOptions{}), test.limit)
			if made.Load() != test.requests {
				t.Errorf("the resumed run made %d more requests", made.Load()-test.requests)
			}
		})
	}
}

func TestAnswerThatIsPaidForIsKept(t *testing.T) {
	t.Parallel()
	var made atomic.Int64
	s := newSession(t, "nodes: [{name: a, uses: test.requester, with: {rounds: 1}, output: answer}, {name: b}]\nbudget: {tokens: 300}", requester(&made))
	res := s.run(host.RunOptions{})
	wantBudget(t, res, "tokens")
	if res.State["answer"] == nil || res.Usage.Tokens != 400 {
		t.Errorf("state %v, %d tokens; want the answer, and its usage once", res.State, res.Usage.Tokens)
	}
}

func TestCallsFromLuaAreToolCalls(t *testing.T) {
	t.Parallel()
	s := newSession(t, "nodes: [{name: a, run: \"for i = 1, 10 do tea.action('count.hit', {name = 'x'}) end\"}]\nbudget: {tool_calls: 4}")
	res := s.run(host.RunOptions{})
	wantBudget(t, res, "tool_calls")
	s.wantCalls(map[string]int{"x": 4})
	if res.Usage.ToolCalls != 4 {
		t.Errorf("tool calls = %d, want 4", res.Usage.ToolCalls)
	}
}

func TestIterationsAndItemsAreNotCountedAsSteps(t *testing.T) {
	t.Parallel()
	res := run(t, `
initial_state: {n: 0}
nodes:
  - {name: loop, type: while_loop, condition: state.n < 1000, max_iterations: 1000, body: [{name: inc, run: "return {n = state.n + 1}"}]}
  - {name: fill, run: "local t = {} for i = 1, 2000 do t[i] = i end return {list = t}"}
  - {name: each, type: dynamic_parallel, items: "{{ state.list }}", steps: [{run: "return {}"}], output: out}
  - {name: count, run: "return {out = #state.out}"}
`, host.RunOptions{})
	if res.Status != flow.Done || res.State["out"] != int64(2000) {
		t.Fatalf("status = %s, err = %v", res.Status, res.Err)
	}
}

func TestEndlessCyclesInsideOfPassesAndItemsEnd(t *testing.T) {
	t.Parallel()
	const endless = "[{name: x, goto: y}, {name: y, goto: x}]"
	for name, text := range map[string]string{
		"run":  "nodes: " + endless,
		"loop": "nodes: [{name: l, type: while_loop, condition: 'true', max_iterations: 3, body: " + endless + "}]",
		"item": "nodes: [{name: m, type: dynamic_parallel, items: [1], steps: [{type: while_loop, condition: 'true', max_iterations: 3, body: " + endless + "}]}]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := run(t, text, host.RunOptions{})
			if res.Status != flow.Failed || !strings.Contains(res.Err.Error(), "config.max_steps") {
				t.Errorf("status = %s, err = %v", res.Status, res.Err)
			}
		})
	}
}

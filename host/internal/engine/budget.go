package engine

import (
	"fmt"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host/internal/spec"
	tea "github.com/the-edge-agent/tea/sdk"
)

// countStep counts one execution of a node. Those that are recorded were
// counted with the records.
func (r *run) countStep(path string) error {
	n := int(r.steps.Add(1))
	wf := r.o.workflow()
	if limit := wf.Config.MaxSteps; limit > 0 && n > limit {
		return tea.Errorf(tea.BudgetExceeded, "the run took more than config.max_steps (%d) steps at %s; is there a loop without an exit?", limit, path)
	}
	b := wf.Budget
	if b.Steps > 0 && n > b.Steps {
		r.steps.Add(-1) // it is not taken
		return r.exhaust("steps", "%d allowed", b.Steps)
	}
	if b.Tokens == 0 && b.USD == 0 {
		return nil
	}
	r.mu.Lock()
	used := r.usage
	r.mu.Unlock()
	switch {
	case b.Tokens > 0 && used.Tokens >= b.Tokens:
		return r.exhaust("tokens", "%d of %d", used.Tokens, b.Tokens)
	case b.USD > 0 && used.USD >= b.USD:
		return r.exhaust("usd", "%.4f of %.4f", used.USD, b.USD)
	}
	return nil
}

// isStep tells whether a node's record is that of a step; the decision where
// a frame begins is none.
func isStep(path string) bool {
	return path != spec.Start && !strings.HasSuffix(path, "/"+spec.Start)
}

// exhaust stops the whole run at a budget.
func (r *run) exhaust(limit, format string, args ...any) error {
	err := &BudgetError{Limit: limit, Used: fmt.Sprintf(format, args...)}
	r.cancel(err)
	return err
}

// startClock begins to count the budget's seconds.
func (r *run) startClock() (stop func()) {
	limit := r.o.workflow().Budget.Duration
	if limit <= 0 && r.o.Journal == nil {
		return func() {} // nobody wants to know
	}
	r.clock = workClock{now: r.now, used: r.replay.worked, limit: limit, over: func() {
		r.cancel(&BudgetError{Limit: "seconds", Used: limit.String()})
	}}
	r.clock.start()
	return r.clock.stop
}

// impliedUsage is what an action's result says it has used.
func impliedUsage(result any) (u Usage) {
	object, ok := result.(map[string]any)
	if !ok {
		return u
	}
	usage, _ := object["usage"].(map[string]any)
	u.Tokens, _ = usage["total_tokens"].(int64)
	switch cost := object["cost_usd"].(type) {
	case float64:
		u.USD = cost
	case int64:
		u.USD = float64(cost)
	}
	return u
}

func (u *Usage) add(v Usage) {
	u.Steps += v.Steps
	u.Tokens += v.Tokens
	u.USD += v.USD
	u.ToolCalls += v.ToolCalls
}

// meter counts what a node or a call has used, with the calls inside it. It
// is guarded by the run's mutex.
type meter struct {
	used  Usage
	outer *meter
}

func (m *meter) add(u Usage) {
	for ; m != nil; m = m.outer {
		m.used.add(u)
	}
}

// spend counts what the result of something says it has used. What the calls
// inside it have used is counted already and may be a part of that.
func (r *run) spend(m *meter, result any) {
	u := impliedUsage(result)
	if u == (Usage{}) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	more := Usage{Tokens: max(0, u.Tokens-m.used.Tokens), USD: max(0, u.USD-m.used.USD)}
	m.add(more)
	r.usage.add(more)
}

// useTool counts one call of an action by an action.
func (r *run) useTool(m *meter) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	m.add(Usage{ToolCalls: 1})
	r.usage.ToolCalls++
	if b := r.o.workflow().Budget.ToolCalls; b > 0 && r.usage.ToolCalls > b {
		return r.exhaust("tool_calls", "%d allowed", b)
	}
	return nil
}

// giveBackTool takes a call back that waits for an answer: it is made again.
func (r *run) giveBackTool(m *meter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m.add(Usage{ToolCalls: -1})
	r.usage.ToolCalls--
}

// usage is what the execution has used in all its attempts.
func (x *execution) usage() Usage {
	r := x.frame.run
	r.mu.Lock()
	defer r.mu.Unlock()
	return x.spent.used
}

// usageBody is usage in a record.
func usageBody(u Usage) map[string]any {
	m := map[string]any{}
	if u.Tokens != 0 {
		m["tokens"] = u.Tokens
	}
	if u.USD != 0 {
		m["usd"] = u.USD
	}
	if u.ToolCalls != 0 {
		m["tool_calls"] = int64(u.ToolCalls)
	}
	return m
}

func toUsage(m map[string]any) (u Usage) {
	u.Tokens, _ = m["tokens"].(int64)
	u.USD = number(m["usd"])
	calls, _ := m["tool_calls"].(int64)
	u.ToolCalls = int(calls)
	return u
}

// number reads a float that JSON may have brought back as an integer.
func number(v any) float64 {
	if n, ok := v.(int64); ok {
		return float64(n)
	}
	f, _ := v.(float64)
	return f
}

func toSeconds(v any) time.Duration { return time.Duration(number(v) * float64(time.Second)) }

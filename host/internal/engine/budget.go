package engine

import (
	"fmt"

	tea "github.com/the-edge-agent/tea/sdk"
)

// countStep counts one execution of a node. Recorded ones count too, so that
// a resumed run has no more steps than an undisturbed one; only a live one
// can reach a limit.
func (r *run) countStep(path string, live bool) error {
	n := int(r.steps.Add(1))
	if !live {
		return nil
	}
	wf := r.o.workflow()
	if limit := wf.Config.MaxSteps; limit > 0 && n > limit {
		return tea.Errorf(tea.BudgetExceeded, "the run took more than config.max_steps (%d) steps at %s; is there a loop without an exit?", limit, path)
	}
	r.mu.Lock()
	used := r.usage
	r.mu.Unlock()
	b := wf.Budget
	switch {
	case b.Steps > 0 && n > b.Steps:
		r.steps.Add(-1) // it is not taken
		return r.exhaust("steps", "%d allowed", b.Steps)
	case b.Tokens > 0 && used.Tokens >= b.Tokens:
		return r.exhaust("tokens", "%d of %d", used.Tokens, b.Tokens)
	case b.USD > 0 && used.USD >= b.USD:
		return r.exhaust("usd", "%.4f of %.4f", used.USD, b.USD)
	}
	return nil
}

// exhaust stops the whole run at a budget.
func (r *run) exhaust(limit, format string, args ...any) error {
	err := &BudgetError{Limit: limit, Used: fmt.Sprintf(format, args...)}
	r.cancel(err)
	return err
}

// use adds what an action's result says it has used.
func (r *run) use(result any) {
	object, ok := result.(map[string]any)
	if !ok {
		return
	}
	usage, _ := object["usage"].(map[string]any)
	tokens, _ := usage["total_tokens"].(int64)
	usd := 0.0
	switch cost := object["cost_usd"].(type) {
	case float64:
		usd = cost
	case int64:
		usd = float64(cost)
	}
	if tokens == 0 && usd == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.usage.Tokens += tokens
	r.usage.USD += usd
}

// useTool counts one call of an action by an action.
func (r *run) useTool() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.usage.ToolCalls++
	if b := r.o.workflow().Budget.ToolCalls; b > 0 && r.usage.ToolCalls > b {
		return r.exhaust("tool_calls", "%d allowed", b)
	}
	return nil
}

package engine

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/engine/replay"
	"github.com/the-edge-agent/tea/internal/execpath"
	tea "github.com/the-edge-agent/tea/sdk"
)

// countStep counts one execution of a node in a frame. Recorded executions were
// counted with their records.
func (r *run) countStep(f *frame, path execpath.Path) error {
	n := int(r.steps.Add(1))
	wf := r.o.workflow()
	if limit := wf.Config.MaxSteps; limit > 0 && f.steps.Load() > int64(limit) {
		return tea.Errorf(tea.BudgetExceeded, "more steps than config.max_steps (%d) allows, at %s; is there a loop without an exit?", limit, path)
	}
	if limit := wf.Budget.Steps; limit > 0 && n > limit {
		r.steps.Add(-1) // the step is not taken
		return r.exhaust(&flow.BudgetError{Limit: "steps", Used: fmt.Sprintf("%d allowed", limit)})
	}
	if b := &wf.Budget; b.Tokens == 0 && b.USD == 0 {
		return nil
	}
	if spent := r.passedBudget(); spent != nil {
		return r.exhaust(spent)
	}
	return nil
}

// exceededBudget returns the budget that requests to models have used up; nil if there is
// none. The caller holds mu.
func (r *run) exceededBudget() *flow.BudgetError {
	b, used := &r.o.workflow().Budget, &r.usage
	switch {
	case b.Tokens > 0 && used.Tokens >= b.Tokens:
		return &flow.BudgetError{Limit: "tokens", Used: fmt.Sprintf("%d of %d", used.Tokens, b.Tokens)}
	case b.USD > 0 && used.USD >= b.USD:
		return &flow.BudgetError{Limit: "usd", Used: fmt.Sprintf("%.4f of %.4f", used.USD, b.USD)}
	}
	return nil
}

// passedBudget is [run.exceededBudget] for callers that do not hold mu.
func (r *run) passedBudget() *flow.BudgetError {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.exceededBudget()
}

// exhaust cancels the whole run because of a budget.
func (r *run) exhaust(err *flow.BudgetError) error {
	r.cancel(err)
	return err
}

// startClock starts counting the budget's seconds.
func (r *run) startClock(ctx context.Context) (stop func()) {
	limit := r.o.workflow().Budget.Duration
	if limit <= 0 && r.o.Journal == nil {
		return func() {} // the time is not used
	}
	r.clock = workClock{now: r.now, used: r.replay.Worked, limit: limit, over: func() {
		r.cancel(&flow.BudgetError{Limit: "seconds", Used: limit.String()})
	}}
	if rt := r.o.Runtime; rt != nil {
		r.clock.after = func(d time.Duration, over func()) func() { return rt.AfterFunc(ctx, d, over) }
	}
	r.clock.start()
	return r.clock.stop
}

// meter counts the usage of a node or a call, including the calls inside it. It is
// guarded by the run's mutex.
type meter struct {
	used  flow.Usage
	outer *meter
}

func (m *meter) add(u flow.Usage) {
	for ; m != nil; m = m.outer {
		m.used = m.used.Add(u)
	}
}

// spend counts the usage that a result reports. The usage of inner calls, which
// it may include, is already counted.
func (r *run) spend(m *meter, result any) {
	u := replay.ImpliedUsage(result)
	if u == (flow.Usage{}) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.metered.Store(true)
	more := flow.Usage{Tokens: max(0, u.Tokens-m.used.Tokens), USD: max(0, u.USD-m.used.USD)}
	m.add(more)
	r.usage = r.usage.Add(more)
}

// report counts the usage of one request to a model as an action reports it. The
// error reports that the budget is spent. An action may finish work that is
// already paid for, but not continue: its next report stops the run.
func (r *run) report(m *meter, path execpath.Path, u tea.Usage) error {
	if u.Tokens < 0 || !(u.USD >= 0 && u.USD <= math.MaxFloat64) {
		return tea.Errorf(tea.ValidationError, "reported usage must not be negative or infinite, got %d tokens and %g usd", u.Tokens, u.USD)
	}
	r.mu.Lock()
	before := r.exceededBudget()
	r.metered.Store(true)
	m.add(flow.Usage{Tokens: u.Tokens, USD: u.USD})
	r.usage = r.usage.Add(flow.Usage{Tokens: u.Tokens, USD: u.USD})
	spent := r.exceededBudget()
	r.mu.Unlock()
	if before != nil {
		r.cancel(spent)
	}
	if err := r.append(path, &replay.Usage{Tokens: u.Tokens, USD: u.USD}); err != nil {
		return err
	}
	if spent != nil {
		return tea.Errorf(tea.BudgetExceeded, "%w", spent)
	}
	return nil
}

// stopOverBudget stops the run if an action failed because the budget is spent.
func (r *run) stopOverBudget(err error) error {
	if failure := tea.AsError(err); failure.Type != tea.BudgetExceeded {
		return err
	}
	if spent := r.passedBudget(); spent != nil {
		return r.exhaust(spent)
	}
	return err
}

// useTool counts one call of an action by an action or by Lua code, and refuses
// it if the budget is spent.
func (r *run) useTool(m *meter) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if spent := r.exceededBudget(); spent != nil {
		return r.exhaust(spent)
	}
	if limit := r.o.workflow().Budget.ToolCalls; limit > 0 && r.usage.ToolCalls >= limit {
		return r.exhaust(&flow.BudgetError{Limit: "tool_calls", Used: fmt.Sprintf("%d allowed", limit)})
	}
	r.metered.Store(true)
	m.add(flow.Usage{ToolCalls: 1})
	r.usage.ToolCalls++
	return nil
}

// refundTool refunds a call that waits for an answer, because it is made again.
func (r *run) refundTool(m *meter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m.add(flow.Usage{ToolCalls: -1})
	r.usage.ToolCalls--
}

// usage returns the usage of all attempts of the execution.
func (x *execution) usage() flow.Usage {
	r := x.frame.run
	if !r.metered.Load() {
		return r.replay.Reported(x.path)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return x.spent.used
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/engine/replay"
	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/state"
	"github.com/the-edge-agent/tea/internal/execpath"
	tea "github.com/the-edge-agent/tea/sdk"
)

// execution is one visit of a node with all its attempts.
type execution struct {
	frame *frame
	node  *graph.Node
	path  execpath.Path
	// base is the state that the frames inside a container start from.
	base *state.State
	// joined are the branch results for a fan-in node.
	joined  *joined
	attempt int
	// round is the attempt in the paths of the workflows that actions run: the
	// number of the last attempt with a record. An attempt gets a record if the
	// previous one ran nodes: in a container, or with ranInside set.
	round     int
	ranInside atomic.Bool
	// unknown is set if the outcome of a call in this attempt is unknown.
	unknown atomic.Pointer[tea.Error]
	started time.Time
	// rec is set when a finished container is walked again.
	rec *replay.Node
	// retries counts the repeated attempts and calls.
	retries atomic.Int64
	// ended is the record of a node that has succeeded.
	ended replay.Node
	// mapped is the update of a container's output mapping if a replay can
	// evaluate it to another value.
	mapped map[string]any
	// spent is the usage of all attempts, trying of the current one.
	spent, trying meter
	// params are the action's parameters, used for events only.
	params any
	// calls counts the actions that were called, for idempotency keys.
	calls callCounter

	tokens tokens

	// first is memory for the first call of an action; nil when it is in use.
	first atomic.Pointer[actionCall]
}

// actionExecution is an execution and its first call in one allocation.
type actionExecution struct {
	execution
	call actionCall
}

// newExecution returns an execution. For actions outside of branches, loops and items, it
// allocates three at a time.
func (f *frame) newExecution(n *graph.Node) *execution {
	if _, ok := n.Body.(*graph.Action); !ok {
		return &execution{}
	}
	if len(f.spare) == 0 {
		several := 1
		if f.outer == nil {
			several = min(3, len(f.graph.Nodes))
		}
		f.spare = make([]actionExecution, several)
	}
	made := &f.spare[0]
	if f.spare = f.spare[1:]; len(f.spare) == 0 {
		f.spare = nil // an empty slice would keep the array alive
	}
	made.first.Store(&made.call)
	return &made.execution
}

// outcome is the outcome of a body.
type outcome struct {
	result any
	// update is merged into the state; nil = it is derived from the result.
	update map[string]any
	// deltas are the updates of the nodes inside a container, in order.
	deltas []delta
	// state is the frame's state after the deltas; nil = the deltas must be applied.
	state *state.State
	// count is the number of iterations of a loop.
	count int
	// joined are the branch results of a map for the fan-in node to.
	joined *joined
	to     *graph.Node
}

// delta is one change of a state.
type delta struct {
	values map[string]any
	// replace reports whether the values bypass reducers.
	replace bool
}

// withRetries runs the body until it succeeds or the policy ends the retries.
func (x *execution) withRetries(ctx context.Context) (outcome, error) {
	defer x.endTokens()
	r := x.frame.run
	policy := x.node.Retry
	container := isContainer(x.node.Body)
	if container && x.node.Spec.Retry == nil {
		policy.MaxRetries = 0 // the nodes inside have their own policies
	}
	total, stop := r.allAttempts(ctx, policy, "node", x.node.Name)
	defer stop()
	x.round = r.replay.Attempt(x.path)
	x.countRetries(x.round - 1)
	for x.attempt = x.round; ; x.attempt++ {
		out, err := x.once(total)
		if err == nil || unwinds(ctx, err) {
			return out, err
		}
		if total.Err() != nil {
			return outcome{}, context.Cause(total)
		}
		failure := asFailure(err)
		if x.attempt > policy.MaxRetries || !retries(policy, failure) {
			return outcome{}, err
		}
		wait, err := r.retryWait(policy, x.attempt, failure)
		if err != nil {
			return outcome{}, err
		}
		x.countRetries(1)
		r.emit(flow.EventRetry, x.node.Name, x.path, retryFields(x.attempt, wait, failure)...)
		if err := r.sleep(total, wait); err != nil {
			return outcome{}, expired(ctx, total, err, failure)
		}
		if container || x.ranInside.Load() {
			r.forget(x.path)
			x.round = x.attempt + 1
			if err := r.append(x.path, &replay.Attempt{N: x.round}); err != nil {
				return outcome{}, err
			}
		}
	}
}

func (x *execution) countRetries(n int) {
	x.retries.Add(int64(n))
	x.frame.countRetries(n)
}

// allAttempts returns the context for all attempts of a policy. what and name
// identify the owner of the attempts in its error.
func (r *run) allAttempts(ctx context.Context, policy graph.Retry, what, name string) (context.Context, context.CancelFunc) {
	if policy.Timeout <= 0 {
		return ctx, func() {}
	}
	return r.withTimeout(ctx, policy.Timeout, tea.Errorf(tea.Timeout, "all attempts of %s %q together took longer than retry.timeout_seconds (%s)", what, name, policy.Timeout))
}

// expired returns the error of a wait for the next attempt: err or, if only total has
// ended, the cause of total with the failure of the last attempt.
func expired(ctx, total context.Context, err error, last *tea.Error) error {
	if ctx.Err() != nil || total.Err() == nil {
		return err
	}
	return tea.Errorf(tea.Timeout, "%s; the last one failed: %s: %s", context.Cause(total), last.Type, last.Message)
}

// once runs the body under the node's timeout.
func (x *execution) once(ctx context.Context) (outcome, error) {
	inner, stop := x.frame.run.nodeTimeout(ctx, x.node)
	defer stop()
	x.calls.reset()
	x.unknown.Store(nil)
	x.trying = meter{outer: &x.spent}
	out, err := x.body(inner)
	if unknown := x.unknown.Load(); unknown != nil && (err == nil || !unwinds(ctx, err)) {
		return outcome{}, unknown // whatever the code that made the call did with the error
	}
	if deadline, ok := inner.Deadline(); ok && err != nil && !time.Now().Before(deadline) {
		<-inner.Done() // on a busy machine a plugin can notice the deadline first
	}
	if err != nil && inner.Err() != nil && ctx.Err() == nil && !errors.Is(err, errSuspended) && !isPluginFault(err) {
		return outcome{}, context.Cause(inner)
	}
	return out, err
}

// isPluginFault reports whether a plugin is at fault. Such an error includes the
// reason why the call was ended.
func isPluginFault(err error) bool { return errors.As(err, new(interface{ PluginFault() })) }

// nodeTimeout returns the context for one attempt of a node's body, for its
// condition, or for the conditions of its routes.
func (r *run) nodeTimeout(ctx context.Context, n *graph.Node) (context.Context, context.CancelFunc) {
	d := n.Timeout
	if d <= 0 {
		return ctx, func() {}
	}
	return r.withTimeout(ctx, d, tea.Errorf(tea.Timeout, "node %q took longer than timeout_seconds (%s)", n.Name, d))
}

func (x *execution) body(ctx context.Context) (outcome, error) {
	f := x.frame
	switch b := x.node.Body.(type) {
	case nil:
		return outcome{}, nil
	case *graph.Action:
		result, err := x.action(ctx, b)
		if err != nil {
			return outcome{}, err
		}
		return x.output(ctx, b.Output, result)
	case *graph.Lua:
		result, err := x.lua(ctx, b)
		if suspended := f.run.suspendedAt(x.path); suspended {
			return outcome{}, errSuspended
		}
		if err != nil {
			return outcome{}, err
		}
		if list, ok := result.([]any); ok && len(list) == 0 {
			result = nil // an empty table changes nothing
		}
		f.run.spend(&x.trying, result)
		return x.output(ctx, b.Output, result)
	}
	return x.container(ctx)
}

// lua runs Lua code. A [Runtime] records the outcome of code that cannot call
// actions.
func (x *execution) lua(ctx context.Context, b *graph.Lua) (any, error) {
	env := x.luaEnv(b.Chunk)
	rt := x.frame.run.o.Runtime
	if rt == nil || b.Chunk.Calls() {
		return b.Chunk.Run(ctx, env)
	}
	env.Steps = 0
	return rt.Once(ctx, func(ctx context.Context) (any, error) {
		result, err := b.Chunk.Run(ctx, env)
		if err != nil {
			return nil, asFailure(err)
		}
		return result, nil
	})
}

func isContainer(b graph.Body) bool {
	switch b.(type) {
	case nil, *graph.Action, *graph.Lua:
		return false
	}
	return true
}

// output converts a result to the update of an output mapping.
func (x *execution) output(ctx context.Context, o *graph.Output, result any) (outcome, error) {
	out := outcome{result: result}
	if o == nil {
		return out, nil
	}
	out.update = map[string]any{}
	if o.Key != "" {
		out.update[o.Key] = result
		return out, nil
	}
	if x.rec != nil && x.rec.Update != nil {
		out.update = x.rec.Update
		return out, nil
	}
	scope := x.scope(result)
	for _, field := range o.Fields {
		v, err := evalValue(ctx, field.Value, scope)
		if err != nil {
			return outcome{}, err
		}
		out.update[field.Key] = v
		if isContainer(x.node.Body) && graph.Varies(field.Value) {
			x.mapped = out.update
		}
	}
	return out, nil
}

// outputOf returns the output of an action or Lua code; nil if there is none.
func outputOf(b graph.Body) *graph.Output {
	switch b := b.(type) {
	case *graph.Action:
		return b.Output
	case *graph.Lua:
		return b.Output
	}
	return nil
}

func evalValue(ctx context.Context, v *expr.Value, scope expr.Scope) (any, error) {
	if v == nil {
		return nil, nil
	}
	return v.Eval(ctx, scope)
}

// apply adds the outcome of a node to the frame's state and results.
func (f *frame) apply(n *graph.Node, out outcome) error {
	if out.state != nil {
		*f.state = *out.state
	}
	for _, d := range out.deltas {
		if out.state != nil {
			f.keep(d)
		} else if err := f.change(d); err != nil {
			return err
		}
	}
	update := out.update
	if update == nil {
		update = implied(n, out.result)
	}
	if len(update) > 0 {
		if err := f.change(delta{values: update}); err != nil {
			return err
		}
	}
	if out.joined != nil {
		f.joined = out.joined
	}
	if out.to != nil {
		f.route = &graph.Route{Implicit: &graph.Target{Node: out.to}}
	}
	f.nodes.setResult(n.Name, out.result)
	return nil
}

// mark is a position in a frame's changes that can be restored.
type mark struct {
	state            state.State
	deltas, failures int
	isSet            bool
}

// mark returns the position of a frame before a container.
func (f *frame) mark(n *graph.Node) mark {
	if !isContainer(n.Body) {
		return mark{}
	}
	m := mark{deltas: len(f.deltas), failures: len(f.failures), isSet: true}
	f.state.ForkTo(&m.state)
	return m
}

// restore undoes the changes of a container whose outcome could not be applied
// completely.
func (f *frame) restore(m mark) {
	if m.isSet {
		f.state, f.deltas, f.failures = &m.state, f.deltas[:m.deltas], f.failures[:m.failures]
	}
}

// implied returns the update of a node without output: an object is merged, any
// other value is stored under the node's name.
func implied(n *graph.Node, result any) map[string]any {
	switch result := result.(type) {
	case nil:
		return nil
	case map[string]any:
		b, _ := n.Body.(*graph.Action)
		if _, ok := result["success"]; !ok || b.Updates() {
			return result
		}
		update := make(map[string]any, len(result))
		for k, v := range result {
			if k != "success" {
				update[k] = v
			}
		}
		return update
	}
	return map[string]any{n.Name: result}
}

// change applies one delta and keeps it for the outer frame.
func (f *frame) change(d delta) error {
	if d.replace {
		f.replace(d.values)
		return nil
	}
	if err := f.state.Apply(d.values, f.graph.Schema); err != nil {
		return err
	}
	f.keep(d)
	return nil
}

// replace applies a change without reducers and checks.
func (f *frame) replace(values map[string]any) {
	f.state.Merge(values)
	f.keep(delta{values: values, replace: true})
}

// keep stores a change for the outer frame if that needs it.
func (f *frame) keep(d delta) {
	if f.outer != nil && !f.joins {
		f.deltas = append(f.deltas, d)
	}
}

// retries reports whether a policy retries a failure.
func retries(policy graph.Retry, failure *tea.Error) bool {
	if len(policy.RetryOn) > 0 {
		return slices.Contains(policy.RetryOn, string(failure.Type))
	}
	return failure.Retryable
}

// retryWait returns the wait before the next attempt: the policy's, or a longer one
// that the failure asks for. If that is longer than the policy allows, the error is
// the failure with the reason why it is not retried.
func (r *run) retryWait(policy graph.Retry, attempt int, failure *tea.Error) (time.Duration, error) {
	if failure.RetryAfter > policy.RetryAfterMax {
		final := *failure
		final.Message += fmt.Sprintf("; not retried: the wait that it asks for, %s, is longer than retry_after_max_seconds (%g)",
			failure.RetryAfter.Round(time.Second), policy.RetryAfterMax.Seconds())
		return 0, &final
	}
	wait := policy.Wait
	if rt := r.o.Runtime; rt != nil {
		wait = func(attempt int) time.Duration { return policy.WaitBy(attempt, rt.Random()) }
	}
	return max(wait(attempt), failure.RetryAfter), nil
}

func retryFields(attempt int, wait time.Duration, failure *tea.Error, more ...flow.Field) []flow.Field {
	return append(failed(failure, field("attempt", int64(attempt)), field("wait_ms", milliseconds(wait))), more...)
}

package engine

import (
	"context"
	"fmt"
	"maps"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/engine/replay"
	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/internal/execpath"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// container runs a body that contains nodes, or walks a recorded one again.
func (x *execution) container(ctx context.Context) (outcome, error) {
	path := x.path.Attempt(max(x.attempt, x.frame.run.replay.Attempt(x.path)))
	switch b := x.node.Body.(type) {
	case *graph.Steps:
		return x.steps(ctx, b, path)
	case *graph.Loop:
		return x.loop(ctx, b, path)
	case *graph.Map:
		return x.eachItem(ctx, b, path)
	case *graph.Subgraph:
		return x.subgraph(ctx, b, path)
	}
	return outcome{}, fmt.Errorf("node %q has a body of unknown kind %T", x.node.Name, x.node.Body)
}

// steps runs bodies in order on a fork of the state, so that a failure leaves the
// frame's state unchanged.
func (x *execution) steps(ctx context.Context, b *graph.Steps, path execpath.Path) (outcome, error) {
	f := x.frame
	inner := f.inner(f.graph, path, x.base, f.run.replay.BegunAt(path, f.void))
	inner.joined = x.joined
	moves := x.base == f.state && !f.run.replay.Resumed()
	inner.joins = moves && f.joins
	var last any
	for _, step := range b.Steps {
		if _, err := inner.visit(ctx, step); err != nil {
			return outcome{}, err
		}
		inner.joined = x.joined
		if v, ok := inner.nodes.result(step.Name); ok {
			last = v
		}
	}
	out := inner.close(outcome{result: last, update: f.run.empty})
	if moves {
		out.state = inner.state
	}
	return out, nil
}

// close ends an inner frame: its changes and results move to the outer frame.
func (f *frame) close(out outcome) outcome {
	out.deltas = append(f.deltas, out.deltas...)
	f.outer.void = max(f.outer.void, f.void)
	f.outer.noteErrors(f.failures)
	f.outer.nodes.addResults(&f.nodes)
	return out
}

func (x *execution) loop(ctx context.Context, b *graph.Loop, path execpath.Path) (outcome, error) {
	f := x.frame
	inner := f.inner(b.Body, path, x.base, f.run.replay.BegunAt(path, f.void))
	passes := 0
	for ; ; passes++ {
		inner.prefix = path.Index(passes)
		inner.countAlone()
		inner.nodes.resetVisits()
		again, err := x.again(ctx, inner, b, passes)
		if err != nil {
			return outcome{}, err
		}
		if !again {
			break
		}
		if f.run.listening() && !f.run.replay.Begun(inner.prefix, inner.void) {
			f.run.emit(flow.EventLoop, x.node.Name, inner.prefix, field("iteration", int64(passes)))
		}
		if err := inner.walk(ctx); err != nil {
			return outcome{}, err
		}
	}
	out := outcome{update: map[string]any{}, count: passes, result: map[string]any{"iterations": int64(passes)}}
	if b.Output != nil {
		mapped, err := x.output(ctx, b.Output, out.result)
		if err != nil {
			return outcome{}, err
		}
		out.update = mapped.update
	}
	return inner.close(out), nil
}

// again decides whether a loop continues; recorded decisions are not repeated.
func (x *execution) again(ctx context.Context, inner *frame, b *graph.Loop, passes int) (bool, error) {
	if x.rec != nil {
		return passes < x.rec.Count, nil
	}
	if inner.run.replay.Begun(inner.prefix, inner.void) {
		return true, nil
	}
	holds, err := inner.holds(ctx, b.Condition, nil)
	if err != nil || !holds {
		return false, err
	}
	if passes >= b.MaxIterations {
		if b.StopAtMax {
			return false, nil
		}
		return false, tea.Errorf(tea.BudgetExceeded, "the loop %q reached max_iterations (%d) and its condition still holds", x.node.Name, b.MaxIterations)
	}
	return true, nil
}

func (x *execution) subgraph(ctx context.Context, b *graph.Subgraph, path execpath.Path) (outcome, error) {
	input := x.base.Values()
	if b.Input != nil {
		v, err := x.input(ctx, path, b.Input)
		if err != nil {
			return outcome{}, err
		}
		object, ok := v.(map[string]any)
		if !ok {
			return outcome{}, tea.Errorf(tea.ValidationError, "the input of the subgraph must be an object, got %s", value.TypeName(v))
		}
		input = object
	}
	final, err := x.frame.runGraph(ctx, b.Graph, path, input, x.frame.calls, func() error { return x.begin(path, b.Input, input) })
	if err != nil {
		return outcome{}, err
	}
	return x.output(ctx, b.Output, final)
}

// input evaluates the input of a container or an action in the state at its
// beginning. A recorded input is not evaluated again.
func (x *execution) input(ctx context.Context, path execpath.Path, v *expr.Value) (any, error) {
	if rec := x.frame.run.replay.Begin(path, x.frame.void); rec != nil {
		return rec.Value, nil
	}
	scope := x.scope(nil)
	scope.state = x.base
	return v.Eval(ctx, scope)
}

// begin records the input of a container if a resume can evaluate v to another
// value.
func (x *execution) begin(path execpath.Path, v *expr.Value, with any) error {
	if x.rec != nil || !graph.Varies(v) || x.frame.run.replay.Begin(path, x.frame.void) != nil {
		return nil
	}
	return x.frame.run.append(path, &replay.Begin{Value: with})
}

// runGraph runs another workflow in a separate frame at a call depth, and returns
// its final state. It calls begin after it has checked the input.
func (f *frame) runGraph(ctx context.Context, g *graph.Graph, path execpath.Path, input map[string]any, calls int, begin func() error) (map[string]any, error) {
	initial, err := g.Schema.Initial(g.Workflow.InitialState, input)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "%s: %w", g.Workflow.Name, err)
	}
	if err := begin(); err != nil {
		return nil, err
	}
	if d := g.Workflow.Config.Timeout; d > 0 {
		var stop context.CancelFunc
		ctx, stop = f.run.withTimeout(ctx, d, tea.Errorf(tea.Timeout, "%s took longer than its config.timeout_seconds (%s)", g.Workflow.Name, d))
		defer stop()
	}
	inner := &frame{}
	inner.begin(f.run, g, initial)
	inner.calls, inner.steps, inner.void = calls, f.steps, f.void
	inner.enclosing, inner.prefix, inner.inputSeq, inner.replayOnly = f, path, f.run.replay.BegunAt(path, f.void), f.replayOnly
	if err := inner.walk(ctx); err != nil {
		return nil, err
	}
	f.void = max(f.void, inner.void)
	return inner.state.Values(), nil
}

// eachItem runs a map's body for each item.
func (x *execution) eachItem(ctx context.Context, b *graph.Map, path execpath.Path) (outcome, error) {
	f := x.frame
	v, err := x.input(ctx, path, b.Items)
	if err != nil {
		return outcome{}, err
	}
	items, ok := v.([]any)
	if !ok && v != nil {
		return outcome{}, tea.Errorf(tea.ValidationError, "items must be a list, got %s", value.TypeName(v))
	}
	if limit := f.graph.Workflow.Config.MaxItems; len(items) > limit {
		return outcome{}, tea.Errorf(tea.ResourceExhausted, "the map %q has %d items; config.max_items allows %d", x.node.Name, len(items), limit)
	}
	if err := x.begin(path, b.Items, items); err != nil {
		return outcome{}, err
	}
	list := make([]branch, len(items))
	for i, item := range items {
		at := path.Index(i)
		name := at // usually the same
		if own := execpath.Path(x.node.Name); own != path {
			name = own.Index(i)
		}
		list[i] = branch{
			name: string(name), path: at, entry: b.Each, single: true, count: len(items),
			item: itemVars{name: b.ItemVar, indexName: b.IndexVar, value: item, index: int64(i)},
		}
	}
	fan := fan{policy: b.Policy, base: x.base, begun: f.run.replay.BegunAt(path, f.void), joins: b.FanIn != nil, tolerant: f.passesResultsTo(b.FanIn) && !b.Policy.FailFast}
	results, err := f.runBranches(ctx, list, fan)
	if err != nil {
		return outcome{}, err
	}
	out := outcome{update: map[string]any{}}
	if b.FanIn != nil {
		out.joined, out.to = &joined{results: results}, b.FanIn
	} else {
		out.deltas = f.takeResumeInput(results)
		for i := range results {
			res := &results[i]
			out.deltas = append(out.deltas, res.deltas...)
			f.noteErrors(res.failures)
		}
	}
	each := make([]any, len(results))
	for i := range results {
		each[i] = results[i].result
	}
	out.result = each
	if b.Output != nil {
		mapped, err := x.output(ctx, b.Output, each)
		if err != nil {
			return outcome{}, err
		}
		maps.Copy(out.update, mapped.update)
	}
	return out, nil
}

// longestLabel bounds the length of an item's label in events.
const longestLabel = 60

// itemLabel returns an item's label in events: the item, or the name or id of an
// object; nil if it is too long.
func itemLabel(item any) any {
	switch v := item.(type) {
	case map[string]any:
		for _, key := range []string{"name", "id"} {
			if _, nested := v[key].(map[string]any); !nested {
				if label := itemLabel(v[key]); label != nil {
					return label
				}
			}
		}
	case string:
		if len(v) <= longestLabel {
			return v
		}
	case bool, int64, float64:
		return v
	}
	return nil
}

// passesResultsTo reports whether a fan-in node reads the results of the branches
// that end there. A node that ends an outer branch does not see them.
func (f *frame) passesResultsTo(join *graph.Node) bool {
	return join != nil && join != f.stop && join.ReadsResults
}

// take follows a decision: to a node, or through the branches of a fan-out to its
// join.
func (f *frame) take(ctx context.Context, path execpath.Path, w way) (*graph.Node, error) {
	if w.fanOut == nil {
		return w.to.Node, nil
	}
	join := w.fanOut.Join
	list := make([]branch, len(w.taken))
	for i, b := range w.taken {
		list[i] = branch{
			name: b.Entry.Name, path: path.Branch(b.Entry.Name),
			entry: b.Entry, stop: join,
		}
	}
	fan := fan{policy: w.fanOut.Policy, base: f.state, begun: f.run.replay.BegunAt(path, f.void), joins: join != nil, tolerant: f.passesResultsTo(join) && !w.fanOut.Policy.FailFast}
	results, err := f.runBranches(ctx, list, fan)
	if err != nil {
		return nil, err
	}
	f.nodes.grow(len(results))
	for i := range results {
		f.nodes.addResults(results[i].nodes)
	}
	if join != nil {
		f.joined = &joined{results: results}
		return join, nil
	}
	for _, d := range f.takeResumeInput(results) {
		f.replace(d.values)
	}
	for i := range results {
		res := &results[i]
		for _, d := range res.deltas {
			if err := f.change(d); err != nil {
				return nil, &flow.NodeError{Node: res.Branch, Path: string(res.path), Err: f.run.failure(err)}
			}
		}
		f.noteErrors(res.failures)
	}
	return nil, nil
}

package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/engine/replay"
	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/spec"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// way is a routing decision: one target, or branches of a fan-out.
type way struct {
	to     graph.Target
	fanOut *graph.FanOut
	taken  []graph.Branch
}

// record returns the decision for the journal.
func (w way) record() replay.Route {
	if w.fanOut == nil {
		return replay.Route{To: w.to.Name()}
	}
	branches := make([]string, len(w.taken))
	for i, b := range w.taken {
		branches[i] = b.Entry.Name
	}
	return replay.Route{Branches: branches}
}

// recorded returns the recorded decision; ok is false if there is none. A missing
// target is an error, or is decided again with --force.
func (f *frame) recorded(rec *replay.Node) (w way, ok bool, err error) {
	if rec.Branches != nil {
		w.fanOut = f.route.FanOut
		if w.fanOut == nil {
			return w, false, f.checkpointMismatch("a fan-out")
		}
		for _, name := range rec.Branches {
			for _, b := range w.fanOut.Branches {
				if b.Entry.Name == name {
					w.taken = append(w.taken, b)
				}
			}
		}
		if len(w.taken) != len(rec.Branches) {
			return w, false, f.checkpointMismatch("a branch of the fan-out")
		}
		return w, true, nil
	}
	switch rec.To {
	case "":
		return w, false, nil
	case spec.End:
		return w, true, nil
	}
	if w.to.Node = f.graph.Node(rec.To); w.to.Node == nil {
		return w, false, f.checkpointMismatch("the node " + rec.To)
	}
	return w, true, nil
}

func (f *frame) checkpointMismatch(what string) error {
	if f.run.o.Relaxed {
		return nil
	}
	return tea.Errorf(tea.ValidationError, "%s, which the checkpoint refers to, is no longer in the workflow", what)
}

func (f *frame) decideStart(ctx context.Context) (way, error) {
	r := f.run
	path := f.prefix.Node(spec.Start)
	f.route = &f.graph.Start
	if rec := r.replay.Node(path, f.void); rec != nil {
		r.markWalked(path, true)
		if w, ok, err := f.recorded(rec); ok || err != nil {
			return w, err
		}
	}
	if f.replayOnly && f.graph.Start.Explicit() {
		return way{}, errReplayed
	}
	w, err := f.decide(ctx, &f.graph.Start, spec.Start, nil)
	if err != nil {
		return w, &flow.NodeError{Node: spec.Start, Path: string(path), Err: f.run.failure(err)}
	}
	if !f.graph.Start.Explicit() {
		return w, nil
	}
	var rec replay.Node
	rec.Route = w.record()
	return w, r.append(path, &rec)
}

// decideRoute evaluates the current route, within the timeout of its node.
func (f *frame) decideRoute(ctx context.Context, n *graph.Node) (way, error) {
	limited, stop := f.run.nodeTimeout(ctx, n)
	defer stop()
	return f.decide(limited, f.route, n.Name, f.ownResult(n.Name))
}

// decide evaluates a route. If nothing matches, the error lists what was tried.
func (f *frame) decide(ctx context.Context, route *graph.Route, from string, result any) (way, error) {
	var tried []string
	if len(route.Goto) > 0 {
		for _, rule := range route.Goto {
			holds, err := f.tryRule(ctx, rule.If, result, &tried)
			if err != nil || holds {
				return way{to: rule.To}, err
			}
		}
		return way{}, noMatch(from, tried)
	}
	if route.FanOut != nil {
		taken, err := f.tryBranches(ctx, route.FanOut, result, &tried)
		if err != nil || len(taken) > 0 {
			return way{fanOut: route.FanOut, taken: taken}, err
		}
	}
	for _, arm := range route.Arms {
		if arm.Switch != nil {
			to, ok, err := f.trySwitch(ctx, arm.Switch, result, &tried)
			if err != nil || ok {
				return way{to: to}, err
			}
			continue
		}
		holds, err := f.tryRule(ctx, arm.When, result, &tried)
		if err != nil || holds {
			return way{to: arm.To}, err
		}
	}
	switch {
	case route.Default != nil:
		return way{to: *route.Default}, nil
	case route.Implicit != nil:
		return way{to: *route.Implicit}, nil
	}
	return way{}, noMatch(from, tried)
}

func noMatch(from string, tried []string) error {
	list := "there is no edge to take"
	if len(tried) > 0 {
		list = "tried " + strings.Join(tried, "; ")
	}
	return tea.Errorf(NoMatchingEdge, "no edge from %q matches: %s", from, list)
}

func (f *frame) tryBranches(ctx context.Context, fan *graph.FanOut, result any, tried *[]string) ([]graph.Branch, error) {
	if !slices.ContainsFunc(fan.Branches, func(b graph.Branch) bool { return b.When != nil }) {
		return fan.Branches, nil
	}
	var taken []graph.Branch
	for _, b := range fan.Branches {
		holds, err := f.tryRule(ctx, b.When, result, tried)
		if err != nil {
			return nil, err
		}
		if holds {
			taken = append(taken, b)
		}
	}
	return taken, nil
}

// tryRule evaluates a guard; nil is always true.
func (f *frame) tryRule(ctx context.Context, cond *graph.Condition, result any, tried *[]string) (bool, error) {
	if cond == nil {
		return true, nil
	}
	v, err := f.evaluate(ctx, cond, result)
	if err != nil {
		return false, err
	}
	*tried = append(*tried, fmt.Sprintf("%s = %s", cond.Value, value.Brief(v)))
	return value.Truthy(v), nil
}

func (f *frame) trySwitch(ctx context.Context, sw *graph.Switch, result any, tried *[]string) (graph.Target, bool, error) {
	v, err := f.evaluate(ctx, sw.Condition, result)
	if err != nil {
		return graph.Target{}, false, err
	}
	if v == nil {
		*tried = append(*tried, fmt.Sprintf("%s = null", sw.Condition.Value))
		if sw.Default != nil {
			return *sw.Default, true, nil
		}
		return graph.Target{}, false, nil
	}
	name, isText := v.(string)
	if !isText {
		name = value.Brief(v)
	}
	known := make([]string, len(sw.Targets))
	for i, t := range sw.Targets {
		if t.Result == name {
			return t.To, true, nil
		}
		known[i] = t.Result
	}
	return graph.Target{}, false, tea.Errorf(NoMatchingEdge, "the condition %q returned %s, which is not one of its targets (%s)",
		firstLine(sw.Condition.Value), value.Brief(v), strings.Join(known, ", "))
}

// evaluate evaluates a condition; a failure of it is a ConditionEvaluation error.
func (f *frame) evaluate(ctx context.Context, cond *graph.Condition, result any) (any, error) {
	v, err := cond.Eval(ctx, f.scope(result), f.luaEnv())
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, tea.Errorf(ConditionEvaluation, "the condition %q failed: %w", firstLine(cond.Value), err)
	}
	return v, nil
}

func (f *frame) holds(ctx context.Context, cond *graph.Condition, result any) (bool, error) {
	v, err := f.evaluate(ctx, cond, result)
	return value.Truthy(v), err
}

func firstLine(text string) string {
	line, rest, more := strings.Cut(strings.TrimSpace(text), "\n")
	if more && rest != "" {
		line += " ..."
	}
	return line
}

package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/engine/replay"
	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/host/internal/state"
	"github.com/the-edge-agent/tea/internal/execpath"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// visit runs one node, or applies its record, and returns the next node; nil at the
// end.
func (f *frame) visit(ctx context.Context, n *graph.Node) (*graph.Node, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	visit := f.nodes.visit(n.Name)
	f.route = &n.Route
	if f.fallbackRoute != nil {
		f.route, f.fallbackRoute = f.fallbackRoute, nil
	}
	path := f.only
	if path == "" {
		path = f.prefix.Node(n.Name).Visit(visit)
	}
	rec := f.run.replay.Node(path, f.void)
	f.steps.Add(1)
	if rec == nil && !f.replayOnly {
		if err := f.run.countStep(f, path); err != nil {
			return nil, f.fail(n, path, 0, err)
		}
	}
	base := f.arrive(path)
	if rec != nil {
		f.run.markWalked(path, isContainer(n.Body) && rec.Failure == nil)
		f.countRetries(rec.Retries)
		return f.replayNode(ctx, n, path, base, rec)
	}
	if f.replayOnly {
		return nil, errReplayed
	}
	f.wake()
	if err := f.goLive(path, &base); err != nil {
		return nil, f.fail(n, path, 0, err)
	}
	return f.runNode(ctx, n, path, base)
}

// runNode runs a node for the first time.
func (f *frame) runNode(ctx context.Context, n *graph.Node, path execpath.Path, base *state.State) (*graph.Node, error) {
	r := f.run
	if r.o.Journal != nil {
		r.mu.Lock()
		r.last = path
		r.mu.Unlock()
	}
	if n.If != nil && !f.hasBegun(path) {
		limited, stop := r.nodeTimeout(ctx, n)
		holds, err := f.holds(limited, n.If, nil)
		stop()
		if err != nil {
			return nil, f.fail(n, path, 0, err)
		}
		if !holds {
			// A skipped node reads no results, but its condition may.
			if err := f.joined.failure(); err != nil && !n.GuardReadsResults {
				return nil, err
			}
			f.joined = nil
			return f.finishNode(ctx, n, path, &replay.Node{Skipped: true}, nil)
		}
	}
	if n.InterruptBefore || f.interrupts(r.o.InterruptBefore, n) || f.waitedAt(string(path.Mark(execpath.Before))) {
		if _, err := f.interrupt(ctx, flow.Interrupt{ID: string(path.Mark(execpath.Before)), Kind: flow.InterruptBefore, Node: n.Name, Path: string(path)}); err != nil {
			return nil, f.fail(n, path, 0, err)
		}
	}
	f.emitNodeStart(n, path)
	x := f.newExecution(n)
	x.frame, x.node, x.path, x.base, x.joined, x.spent.used = f, n, path, base, f.joined, r.replay.Reported(path)
	if r.listening() {
		x.started = r.now() // for events only
	}
	before := f.mark(n)
	out, err := x.withRetries(ctx)
	if err == nil {
		f.joined = nil
		err = f.apply(n, out)
	}
	if err != nil {
		f.restore(before)
		return f.failed(ctx, x, err)
	}
	rec := &x.ended
	rec.Update, rec.Count = x.mapped, out.count
	if !isContainer(n.Body) {
		rec.Result = out.result
		if o := outputOf(n.Body); o == nil || !o.Derived {
			rec.Update = out.update
		}
	}
	rec.Retries = int(x.retries.Load())
	rec.SetUsage(x.usage())
	return f.finishNode(ctx, n, path, rec, x)
}

// hasBegun reports whether a node without a record had begun before a resume, so
// that its condition was true.
func (f *frame) hasBegun(path execpath.Path) bool {
	p := f.run.replay
	return p.Begun(path, f.void) || p.Attempt(path) > 1 || f.waitedAt(string(path.Mark(execpath.Ask)))
}

// finishNode decides where to go, stores the record, emits the end and stops at an
// interrupt after the node. With such an interrupt it decides last, so that the
// decision uses the input of the resume.
func (f *frame) finishNode(ctx context.Context, n *graph.Node, path execpath.Path, rec *replay.Node, end *execution) (*graph.Node, error) {
	stops := f.stopsAfter(n)
	var way way
	var routeErr error
	if !stops {
		if way, routeErr = f.decideRoute(ctx, n); routeErr == nil && f.run.o.Journal != nil {
			rec.Route = way.record()
		}
	}
	if err := f.run.append(path, rec); err != nil {
		return nil, err
	}
	f.emitNodeEnd(n, path, rec, end)
	if stops {
		return f.interruptAfterNode(ctx, n, path)
	}
	if routeErr != nil {
		return nil, f.fail(n, path, 0, routeErr)
	}
	return f.take(ctx, path, way)
}

func (f *frame) interruptAfterNode(ctx context.Context, n *graph.Node, path execpath.Path) (*graph.Node, error) {
	if f.replayOnly {
		return nil, errReplayed
	}
	if _, err := f.interrupt(ctx, flow.Interrupt{ID: string(path.Mark(execpath.After)), Kind: flow.InterruptAfter, Node: n.Name, Path: string(path)}); err != nil {
		return nil, err
	}
	return f.decideRecorded(ctx, n, path)
}

// decideRecorded decides where an already recorded node leads.
func (f *frame) decideRecorded(ctx context.Context, n *graph.Node, path execpath.Path) (*graph.Node, error) {
	if f.replayOnly {
		return nil, errReplayed
	}
	f.wake()
	if err := f.goLive(path.Mark(execpath.After), nil); err != nil {
		return nil, f.fail(n, path, 0, err)
	}
	way, err := f.decideRoute(ctx, n)
	if err != nil {
		return nil, f.fail(n, path, 0, err)
	}
	rec := way.record()
	if err := f.run.append(path, &rec); err != nil {
		return nil, err
	}
	return f.take(ctx, path, way)
}

// stopsAfter reports whether there is an interrupt after a node.
func (f *frame) stopsAfter(n *graph.Node) bool {
	return n.InterruptAfter || f.interrupts(f.run.o.InterruptAfter, n)
}

// interrupts reports whether a list of the options contains a node, by name or by
// path.
func (f *frame) interrupts(names []string, n *graph.Node) bool {
	for _, name := range names {
		if name == string(f.prefix.Node(n.Name)) || name == n.Name && f.topLevel() {
			return true
		}
	}
	return false
}

// topLevel reports whether the frame's nodes are in the workflow's top-level list:
// in the run itself and its branches.
func (f *frame) topLevel() bool { return f.graph == f.run.o.Graph }

// failed applies the node's policy after the last attempt.
func (f *frame) failed(ctx context.Context, x *execution, err error) (*graph.Node, error) {
	n, path := x.node, x.path
	if unwinds(ctx, err) {
		return nil, err
	}
	failure := f.run.failure(err)
	f.emitNodeError(x, failure)
	f.run.forget(path)
	goesOn := n.Fallback != nil && (n.OnError == spec.OnErrorFallback || n.Spec.OnError == spec.OnErrorDefault)
	if goesOn || n.OnError == spec.OnErrorContinue {
		f.run.failures.note(path, false, failure)
	}
	switch {
	case goesOn:
		rec := &replay.Node{Failure: replay.NewFailure(failure), Fallback: true, Retries: int(x.retries.Load())}
		rec.SetUsage(x.usage())
		if err := f.run.append(path, rec); err != nil {
			return nil, err
		}
		f.joined = x.joined
		return f.visitFallback(n)
	case n.OnError == spec.OnErrorContinue:
		f.joined = nil
		out := outcome{result: failureResult(failure), update: continued(n, failure)}
		f.noteFailure(path, failure)
		if err := f.apply(n, out); err != nil {
			return nil, f.fail(n, path, x.attempt, err)
		}
		rec := &replay.Node{Failure: replay.NewFailure(failure), Result: out.result, Update: out.update, Retries: int(x.retries.Load())}
		rec.SetUsage(x.usage())
		return f.finishNode(ctx, n, path, rec, nil)
	}
	return nil, f.fail(n, path, x.attempt, err)
}

// continued returns the update of a failed node with on_error: continue.
func continued(n *graph.Node, failure *tea.Error) map[string]any {
	update := map[string]any{}
	if a, ok := n.Body.(*graph.Action); ok && a.Output != nil && a.Output.Key != "" {
		update[a.Output.Key] = failureResult(failure)
	}
	return update
}

// visitFallback runs the fallback node in place of the failed node. A fallback without
// edges or goto continues as the failed node would if that node has them, or if the
// fallback is the last node of its list.
func (f *frame) visitFallback(failed *graph.Node) (*graph.Node, error) {
	fallback := failed.Fallback
	if fallback == nil {
		return nil, tea.Errorf(tea.InternalError, "the fallback of %s, which the checkpoint refers to, is no longer in the workflow", failed.Name)
	}
	last := !fallback.Route.Explicit() && fallback.Route.Implicit.Node == nil
	if (last || !fallback.Route.Explicit() && failed.Route.Explicit()) && !slices.Equal(failed.Route.Targets(), []*graph.Node{fallback}) {
		f.fallbackRoute = &failed.Route
	}
	return fallback, nil
}

// fail returns the error that ends the frame; errors that only pass through are
// returned unchanged.
func (f *frame) fail(n *graph.Node, path execpath.Path, attempts int, err error) error {
	var node *flow.NodeError
	if errors.Is(err, errSuspended) || errors.Is(err, errReplayed) || errors.As(err, &node) || errors.As(err, new(*journalError)) || errors.As(err, new(*flow.BudgetError)) {
		return err
	}
	failed := &flow.NodeError{Node: n.Name, Path: string(path), Pos: n.Spec.Pos, Attempts: attempts, Err: f.run.failure(err)}
	var code interface {
		CodePosition() (file string, line int)
	} // a *script.RunError here
	if errors.As(err, &code) {
		if file, line := code.CodePosition(); line > 0 {
			failed.Pos, failed.InCode = diag.Pos{File: file, Line: line}, true
		}
	}
	return failed
}

// unwinds reports whether an error only passes through: a suspended frame, the end
// of the records or of the run's context, or a checkpoint that cannot be written.
func unwinds(ctx context.Context, err error) bool {
	return errors.Is(err, errSuspended) || errors.Is(err, errReplayed) || ctx.Err() != nil || errors.As(err, new(*journalError))
}

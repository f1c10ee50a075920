package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/state"
)

// Where a resume's input was merged is part of the path of its record.
const (
	markBefore = ":before" // at an interrupt before the node
	markResume = ":resume" // at the node where a frame went on
	markAfter  = ":after"  // behind the node, before its route was decided
)

// arrive applies recorded inputs at a path and gives the state that a
// container's frames at this path start from.
func (f *frame) arrive(path string) *state.State {
	base := f.state
	if !f.run.replay.resumed {
		return base
	}
	inputs := slices.Concat(f.run.replay.inputs[path+markBefore], f.run.replay.inputs[path+markResume])
	slices.SortFunc(inputs, func(a, b input) int { return cmp.Compare(a.seq, b.seq) })
	for _, in := range inputs {
		if in.begun && base == f.state {
			base = f.state.Fork()
		}
		f.replace(in.values)
	}
	return base
}

// goLive is called where a resumed frame meets the first thing that is not
// recorded: the input of the resume is merged here, once. A container that
// had begun keeps its base, the state from before.
func (f *frame) goLive(path string, base **state.State) error {
	r := f.run
	if f.inputDone || !r.replay.resumed || len(r.o.Input) == 0 {
		return nil
	}
	f.inputDone = true
	r.inputTaken.Store(true)
	begun := base != nil && r.replay.begun[path]
	if begun && *base == f.state {
		*base = f.state.Fork()
	}
	if base != nil {
		path += markResume
	}
	return f.mergeInput(path, r.o.Input, begun)
}

// mergeInput merges what somebody gave into the state, journaled at path.
func (f *frame) mergeInput(path string, values map[string]any, begun bool) error {
	fitted, err := f.graph.Schema.Fit(values)
	if err != nil {
		return err
	}
	body := map[string]any{"values": values}
	if begun {
		body["begun"] = true
	}
	if err := f.run.append(kindInput, path, body); err != nil {
		return err
	}
	f.replace(fitted)
	return nil
}

// replayInputs merges the recorded inputs of a path.
func (f *frame) replayInputs(path string) {
	for _, in := range f.run.replay.inputs[path] {
		f.replace(in.values)
	}
}

// replayNode applies a recorded execution.
func (f *frame) replayNode(ctx context.Context, n *graph.Node, path string, base *state.State, rec *nodeRecord) (*graph.Node, error) {
	if rec.fallback {
		return f.visitFallback(n)
	}
	joined := f.joined
	f.joined = nil
	if !rec.skipped {
		if err := f.reapply(ctx, n, path, base, joined, rec); err != nil {
			return nil, err
		}
	}
	f.replayInputs(path + markAfter)
	if way, ok, err := f.recorded(rec); err != nil {
		return nil, f.fail(n, path, 0, err)
	} else if ok {
		return f.take(ctx, path, way)
	}
	if f.stopsAfter(n) || f.run.waitedAt(path+":after") {
		return f.leaveAfterInterrupt(ctx, n, path)
	}
	return f.leaveLate(ctx, n, path)
}

// reapply gives the state and the results what a recorded execution gave. A
// container is walked again: its own nodes are recorded too.
func (f *frame) reapply(ctx context.Context, n *graph.Node, path string, base *state.State, joined *joined, rec *nodeRecord) error {
	out := outcome{result: rec.result, update: rec.update}
	if rec.failure == nil && isContainer(n.Body) {
		x := &execution{frame: f, node: n, path: path, base: base, joined: joined, rec: rec}
		again, err := x.container(ctx)
		if err != nil {
			return err
		}
		out = again
	}
	if rec.failure != nil {
		f.noteFailure(path, rec.failure)
	}
	if err := f.apply(n, out); err != nil {
		return f.fail(n, path, 0, err)
	}
	return nil
}

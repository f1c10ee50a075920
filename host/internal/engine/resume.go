package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/secret"
	"github.com/the-edge-agent/tea/host/internal/state"
	"github.com/the-edge-agent/tea/sdk/value"
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
		f.replayInput(in)
	}
	return base
}

// goLive is called where a resumed frame meets the first thing that is not
// recorded. What resumes were given as input is merged here, once. A container
// that had begun keeps its base, the state from before.
func (f *frame) goLive(path string, base **state.State) error {
	r := f.run
	if f.inputSeq == inputAll || !r.replay.resumed {
		return nil
	}
	values := r.givenAfter(f.inputSeq)
	f.inputSeq = inputAll
	if len(values) == 0 {
		return nil
	}
	begun := base != nil && r.replay.hasBegun(path, f.void)
	if begun && *base == f.state {
		*base = f.state.Fork()
	}
	if base != nil {
		path += markResume
	}
	return f.mergeInput(path, input{values: values, begun: begun, given: true})
}

// mergeInput merges what a resume was given, or an object that answers an
// interrupt, into the state, journaled at path.
func (f *frame) mergeInput(path string, in input) error {
	r := f.run
	fitted, err := f.graph.Schema.Fit(in.values)
	if err != nil {
		return err
	}
	body := map[string]any{"values": in.values}
	if in.begun {
		body["begun"] = true
	}
	if in.given {
		body["given"] = true
		if err := r.recordGiven(); err != nil {
			return err
		}
	}
	if err := r.append(kindInput, path, body); err != nil {
		return err
	}
	f.replace(fitted)
	return nil
}

// givenAfter is the input of resumes that a state does not include, which
// includes that up to a record.
func (r *run) givenAfter(seq uint64) map[string]any {
	values := map[string]any{}
	for _, g := range r.replay.given {
		if g.seq > seq {
			maps.Copy(values, g.values)
		}
	}
	if !r.givenAgain() {
		maps.Copy(values, r.o.Input)
	}
	return values
}

// givenAgain reports whether the input of this resume is that of the last one,
// which was killed: the same command was given again.
func (r *run) givenAgain() bool {
	last := len(r.replay.given) - 1
	return last >= 0 && value.Equal(r.replay.given[last].values, r.o.Input)
}

// recordGiven records the input of this resume before the first frame merges
// it, so that after a kill the others still do.
func (r *run) recordGiven() error {
	r.giveOnce.Do(func() {
		if len(r.o.Input) == 0 {
			return
		}
		r.inputTaken.Store(true)
		if !r.givenAgain() {
			r.giveErr = r.append(kindGiven, "", map[string]any{"values": r.o.Input})
		}
	})
	return r.giveErr
}

// GivenRecord is the record of the input that a fork is given.
func GivenRecord(values map[string]any, secrets *secret.Set) (checkpoint.Record, error) {
	raw, err := value.Encode(secrets.Seal(map[string]any{"values": values}))
	if err != nil {
		return checkpoint.Record{}, fmt.Errorf("encode the input: %w", err)
	}
	return checkpoint.Record{Kind: kindGiven, Body: raw}, nil
}

// replayInputs merges the recorded inputs of a path.
func (f *frame) replayInputs(path string) {
	for _, in := range f.run.replay.inputs[path] {
		f.replayInput(in)
	}
}

func (f *frame) replayInput(in input) {
	f.replace(in.values)
	if in.given && f.inputSeq != inputAll {
		f.inputSeq = in.seq
	}
}

// replayNode applies a recorded execution.
func (f *frame) replayNode(ctx context.Context, n *graph.Node, path string, base *state.State, rec *nodeRecord) (*graph.Node, error) {
	if rec.failure != nil {
		f.run.failures.note(path, false, rec.failure)
	}
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
	if f.stopsAfter(n) || f.waitedAt(path+":after") {
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

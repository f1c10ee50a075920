package engine

import (
	"context"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/engine/replay"
	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/state"
	"github.com/the-edge-agent/tea/internal/execpath"
	tea "github.com/the-edge-agent/tea/sdk"
)

// arrive applies the recorded inputs at a path and returns the initial state of a
// container's frames at this path.
func (f *frame) arrive(path execpath.Path) *state.State {
	base := f.state
	if !f.run.replay.Resumed() {
		return base
	}
	inputs := slices.Concat(f.run.replay.Inputs(path.Mark(execpath.Before)), f.run.replay.Inputs(path.Mark(execpath.Resume)))
	sort.Slice(inputs, func(i, j int) bool { return inputs[i].Seq < inputs[j].Seq })
	for _, in := range inputs {
		if in.Begun && base == f.state {
			base = f.state.Fork()
		}
		f.replayInput(in)
	}
	return base
}

// goLive is called when a resumed frame reaches the first path that is not
// recorded. It merges the input of resumes, once. A container that had begun keeps
// its base, the state before the merge.
func (f *frame) goLive(path execpath.Path, base **state.State) error {
	r := f.run
	if f.inputSeq == replay.End || !r.replay.Resumed() {
		return nil
	}
	values := r.inputsAfter(f.inputSeq)
	f.inputSeq = replay.End
	if len(values) == 0 {
		return nil
	}
	begun := base != nil && r.replay.Begun(path, f.void)
	if begun && *base == f.state {
		*base = f.state.Fork()
	}
	if base != nil {
		path = path.Mark(execpath.Resume)
	}
	return f.mergeInput(path, replay.Input{Values: values, Begun: begun, FromResume: true})
}

// mergeInput merges the input of a resume, or an object that answers an interrupt,
// into the state, and journals it at path.
func (f *frame) mergeInput(path execpath.Path, in replay.Input) error {
	r := f.run
	fitted, err := f.graph.Schema.Convert(in.Values)
	if err != nil {
		return tea.Errorf(tea.ValidationError, "%w", err)
	}
	if in.FromResume {
		if err := r.recordInput(); err != nil {
			return err
		}
	}
	if err := r.append(path, &in); err != nil {
		return err
	}
	f.replace(fitted)
	return nil
}

// CheckInput checks the input of a resume against the schemas of all graphs in
// which an interrupt is pending, before anything runs. The error is a
// [*flow.InputError].
func CheckInput(g *graph.Graph, input map[string]any, pending []flow.Interrupt) error {
	_, err := g.Schema.Convert(input)
	for _, i := range pending {
		for _, inner := range graphsAround(g, execpath.Path(i.Path)) {
			if err == nil {
				_, err = inner.Schema.Convert(input)
			}
		}
	}
	return err
}

// CheckAnswer checks the answer to a pending interrupt. An object that answers an
// interrupt before or after a node is merged into the state there.
func CheckAnswer(g *graph.Graph, i flow.Interrupt, answer any) error {
	if err := i.Check(answer); err != nil {
		return err
	}
	values, ok := answer.(map[string]any)
	around := append([]*graph.Graph{g}, graphsAround(g, execpath.Path(i.Path))...)
	if !ok || i.Kind == flow.InterruptAsk {
		return nil
	}
	if _, err := around[len(around)-1].Schema.Convert(values); err != nil {
		return tea.Errorf(tea.ValidationError, "the answer to %s is not valid: %v", i.ID, err)
	}
	return nil
}

// graphsAround returns the graphs inside g that a path leads through, except graphs
// that an action runs, which are not known statically.
func graphsAround(g *graph.Graph, path execpath.Path) (list []*graph.Graph) {
	find := g.Node
	for outer, _, more := strings.Cut(string(path), "/"); more; outer, _, more = strings.Cut(string(path), "/") {
		path = path[len(outer)+1:]
		if strings.Contains(outer, ">") {
			continue // a branch, of the same graph
		}
		n := find(outer[:strings.IndexAny(outer+"#", "#[~!")])
		if n == nil || strings.Contains(outer, "!") {
			return list
		}
		body := n.Body
		if each, ok := body.(*graph.Map); ok {
			body = each.Each.Body
		}
		var inner *graph.Graph
		switch b := body.(type) {
		case *graph.Subgraph:
			inner = b.Graph
		case *graph.Loop:
			inner = b.Body
		case *graph.Steps:
			find = b.Step
			continue
		}
		if inner == nil {
			return list
		}
		list, find = append(list, inner), inner.Node
	}
	return list
}

// inputsAfter returns the input of resumes that is missing from a state. The state
// includes the input up to a record.
func (r *run) inputsAfter(seq uint64) map[string]any {
	values := r.replay.InputsAfter(seq)
	if !r.isRepeated() {
		maps.Copy(values, r.o.Input)
	}
	return values
}

// isRepeated reports whether the last command was repeated.
func (r *run) isRepeated() bool { return r.replay.IsLastInput(r.o.Input) }

// recordInput records the input of this resume before the first frame merges it,
// so that the other frames merge it even after a kill.
func (r *run) recordInput() error {
	r.recordInputOnce.Do(func() {
		if len(r.o.Input) == 0 {
			return
		}
		r.inputTaken.Store(true)
		if !r.isRepeated() {
			r.recordInputErr = r.append("", &replay.ResumeInput{Values: r.o.Input})
		}
	})
	return r.recordInputErr
}

// replayInputs merges the recorded inputs at a path.
func (f *frame) replayInputs(path execpath.Path) {
	for _, in := range f.run.replay.Inputs(path) {
		f.replayInput(in)
	}
}

func (f *frame) replayInput(in replay.Merged) {
	f.replace(in.Values)
	if in.FromResume && f.inputSeq != replay.End {
		f.inputSeq = in.Seq
	}
}

// replayNode applies a recorded execution.
func (f *frame) replayNode(ctx context.Context, n *graph.Node, path execpath.Path, base *state.State, rec *replay.Node) (*graph.Node, error) {
	if rec.Failure != nil {
		f.run.failures.note(path, false, rec.Failure.Err())
	}
	if rec.Fallback {
		return f.visitFallback(n)
	}
	joined := f.joined
	f.joined = nil
	if !rec.Skipped {
		if err := f.reapply(ctx, n, path, base, joined, rec); err != nil {
			return nil, err
		}
	}
	f.replayInputs(path.Mark(execpath.After))
	if way, ok, err := f.recorded(rec); err != nil {
		return nil, f.fail(n, path, 0, err)
	} else if ok {
		return f.take(ctx, path, way)
	}
	if f.stopsAfter(n) || f.waitedAt(string(path.Mark(execpath.After))) {
		return f.interruptAfterNode(ctx, n, path)
	}
	return f.decideRecorded(ctx, n, path)
}

// reapply adds a recorded outcome to the state and the results. A container is
// walked again, because its nodes are recorded too. An update that is derived from
// the result is computed again.
func (f *frame) reapply(ctx context.Context, n *graph.Node, path execpath.Path, base *state.State, joined *joined, rec *replay.Node) error {
	out := outcome{result: rec.Result, update: rec.Update}
	if rec.Failure == nil {
		var err error
		x := execution{frame: f, node: n, path: path, base: base, joined: joined, rec: rec}
		switch o := outputOf(n.Body); {
		case isContainer(n.Body):
			out, err = x.container(ctx)
		case o != nil && rec.Update == nil:
			out, err = x.output(ctx, o, rec.Result)
		}
		if err != nil {
			return err
		}
	}
	if rec.Failure != nil {
		f.noteFailure(path, rec.Failure.Err())
	}
	if err := f.apply(n, out); err != nil {
		return f.fail(n, path, 0, err)
	}
	return nil
}

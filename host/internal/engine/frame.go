package engine

import (
	"context"
	"sync/atomic"

	"github.com/the-edge-agent/tea/host/internal/execpath"
	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/host/internal/state"
)

// frame is one sequence of nodes on one state. It belongs to one goroutine.
type frame struct {
	run    *run
	graph  *graph.Graph
	prefix execpath.Path
	state  *state.State
	// own is where state lives in the beginning.
	own state.State
	// around is the frame around this one, that of a subgraph too; start
	// waits for the first node of a branch that continues.
	around *frame
	start  *branchStart
	// steps counts the node executions that config.max_steps bounds: those of
	// the run, or of the item or the pass that the frame is in, which count by
	// themselves.
	steps    *atomic.Int64
	ownSteps atomic.Int64
	// calls is how many actions and workflow files the frame is inside of.
	calls int
	// nodes are the visits and the last results of the nodes in this frame.
	nodes visits
	// outer is the frame around a branch, loop body or map item, for results
	// and item variables; nil for a run and a subgraph.
	outer *frame
	// item are the variables of a map's item; the zero value has none.
	item itemVars
	// retries counts the retries of nodes in a branch; nil outside a branch.
	retries *atomic.Int64
	// joins says that a branch ends at a fan-in node: its deltas are not needed.
	joins bool
	// stop is the fan-in node at which a branch ends.
	stop *graph.Node
	// joined are the results of the fan-out that ends at the next node.
	joined *joined
	// route is where the present node leads; standIn replaces that of the
	// next one, a fallback without its own routing.
	route, standIn *graph.Route
	// deltas are the changes so far, for the frame around; failures the
	// entries of __errors__.
	deltas   []delta
	failures []any
	// only is the path of the one node of a map's branch.
	only execpath.Path
	// replayOnly stops the frame at the first node that is not recorded.
	replayOnly bool
	// void is the record up to which none counts any more in this frame, since
	// branches were run again.
	void uint64
	// inputSeq is the last record whose input, given to a resume, the state of
	// the frame includes; replay.End where it includes every input.
	inputSeq uint64
}

func newFrame(r *run, g *graph.Graph, values map[string]any) *frame {
	f := &frame{run: r, graph: g}
	f.own.Reset(values)
	f.state = &f.own
	f.steps = &f.ownSteps
	f.nodes.list = make([]entry, 0, min(len(g.Nodes), longVisits))
	return f
}

// inner makes a frame inside this one, with a fork of its state. begun is the
// record with which the frame's container began, replay.End where it has not:
// the input of later resumes is merged in here too.
func (f *frame) inner(g *graph.Graph, prefix execpath.Path, base *state.State, begun uint64) *frame {
	inner := &frame{}
	inner.open(f, g, prefix, base, begun)
	return inner
}

// open is [frame.inner] for a frame that has its place already.
func (f *frame) open(outer *frame, g *graph.Graph, prefix execpath.Path, base *state.State, begun uint64) {
	*f = frame{
		inputSeq: begun, run: outer.run, graph: g, prefix: prefix, outer: outer, around: outer,
		replayOnly: outer.replayOnly, steps: outer.steps, calls: outer.calls, void: outer.void,
	}
	base.ForkTo(&f.own)
	f.state = &f.own
}

// countRetries counts retries in all branches that contain the frame.
func (f *frame) countRetries(n int) {
	for ; f != nil && n > 0; f = f.around {
		if f.retries != nil {
			f.retries.Add(int64(n))
		}
	}
}

// countAlone makes the frame count its steps from 0, by itself.
func (f *frame) countAlone() {
	f.ownSteps.Store(0)
	f.steps = &f.ownSteps
}

// walk runs the frame's graph from its start to its end.
func (f *frame) walk(ctx context.Context) error {
	way, err := f.decideStart(ctx)
	if err != nil {
		return err
	}
	next, err := f.take(ctx, f.prefix.Node(spec.Start), way)
	if err != nil {
		return err
	}
	return f.walkFrom(ctx, next, nil)
}

// walkFrom runs from a node to the end of the frame, or until it would run stop.
func (f *frame) walkFrom(ctx context.Context, n, stop *graph.Node) error {
	var err error
	for err == nil && n != nil && n != stop {
		n, err = f.visit(ctx, n)
	}
	return err
}

// result finds the last result of a node, here or in a frame around.
func (f *frame) result(name string) (any, bool) {
	for ; f != nil; f = f.outer {
		if v, ok := f.nodes.result(name); ok {
			return v, true
		}
	}
	return nil, false
}

// ownResult is the last result of a node in this frame, nil where it has none.
func (f *frame) ownResult(name string) any {
	v, _ := f.nodes.result(name)
	return v
}

// allResults is every node result that can be seen from here.
func (f *frame) allResults() map[string]any {
	all := map[string]any{}
	if f.outer != nil {
		all = f.outer.allResults()
	}
	f.nodes.copyResults(all)
	return all
}

// hasNode reports whether a node that can be seen from here has the name.
func (f *frame) hasNode(name string) bool {
	for ; f != nil; f = f.outer {
		if f.graph.HasNode(name) {
			return true
		}
	}
	return false
}

// itemVars are the variables of one item of a map.
type itemVars struct {
	name, indexName string
	value           any
	index           int64
}

// itemVar finds an item variable that can be seen from here.
func (f *frame) itemVar(name string) (any, bool) {
	for ; f != nil; f = f.outer {
		switch name {
		case "": // that of a frame without an item
		case f.item.indexName:
			return f.item.index, true
		case f.item.name:
			return f.item.value, true
		}
	}
	return nil, false
}

// addItemVars puts the item variables that can be seen from here into m.
func (f *frame) addItemVars(m map[string]any) {
	if f.outer != nil {
		f.outer.addItemVars(m)
	}
	if f.item.name != "" {
		m[f.item.name], m[f.item.indexName] = f.item.value, f.item.index
	}
}

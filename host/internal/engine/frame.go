package engine

import (
	"context"
	"sync/atomic"

	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/host/internal/state"
	"github.com/the-edge-agent/tea/internal/execpath"
)

// frame is one sequence of nodes on one state. It belongs to one goroutine.
type frame struct {
	run    *run
	graph  *graph.Graph
	prefix execpath.Path
	state  *state.State
	// own is the initial storage of state.
	own state.State
	// enclosing is the frame that contains this one, even if this one is a subgraph; start is emitted before
	// the first node of a branch that continues.
	enclosing *frame
	start     *branchStart
	// steps counts the node executions that config.max_steps bounds: those of the
	// run, or of the enclosing item or loop iteration, which are counted
	// separately.
	steps    *atomic.Int64
	ownSteps atomic.Int64
	// calls is the nesting depth of actions and workflow files.
	calls int
	// nodes are the visits and the last results of the nodes in this frame.
	nodes visits
	// outer is the frame around a branch, loop body or map item, for results and
	// item variables; nil for a run and a subgraph.
	outer *frame
	// item are the variables of a map's item; the zero value has none.
	item itemVars
	// retries counts the retries of nodes in a branch; nil outside a branch.
	retries *atomic.Int64
	// joins reports whether a branch ends at a fan-in node, so that its deltas are not needed.
	joins bool
	// stop is the fan-in node at which a branch ends.
	stop *graph.Node
	// joined are the results of the fan-out that ends at the next node.
	joined *joined
	// route is the route of the current node; fallbackRoute replaces the route of the
	// next one, a fallback without a route.
	route, fallbackRoute *graph.Route
	// deltas are the changes so far, for the outer frame; failures are the
	// entries of __errors__.
	deltas   []delta
	failures []any
	// spare is memory for the next executions of actions.
	spare []actionExecution
	// only is the path of the single node of a map's branch.
	only execpath.Path
	// replayOnly stops the frame at the first node that is not recorded.
	replayOnly bool
	// Records with numbers up to void do not count in this frame, because branches
	// were run again.
	void uint64
	// inputSeq is the last record whose input, given to a resume, is included in
	// the frame's state; replay.End if every input is included.
	inputSeq uint64
}

// begin initializes f as the frame of a graph's own nodes, with values as the state.
func (f *frame) begin(r *run, g *graph.Graph, values map[string]any) {
	f.run, f.graph = r, g
	f.own.Reset(values)
	f.state = &f.own
	f.steps = &f.ownSteps
	f.nodes.grow(min(len(g.Nodes), indexThreshold))
}

// inner returns a new frame inside this one, with a fork of its state. begun is
// the record with which the frame's container began, replay.End if it has not: the
// input of later resumes is merged in the inner frame too.
func (f *frame) inner(g *graph.Graph, prefix execpath.Path, base *state.State, begun uint64) *frame {
	inner := &frame{}
	inner.open(f, g, prefix, base, begun)
	return inner
}

// open is [frame.inner] for a frame that is already allocated.
func (f *frame) open(outer *frame, g *graph.Graph, prefix execpath.Path, base *state.State, begun uint64) {
	*f = frame{
		inputSeq: begun, run: outer.run, graph: g, prefix: prefix, outer: outer, enclosing: outer,
		replayOnly: outer.replayOnly, steps: outer.steps, calls: outer.calls, void: outer.void,
	}
	base.ForkTo(&f.own)
	f.state = &f.own
}

// countRetries counts retries in all branches that contain the frame.
func (f *frame) countRetries(n int) {
	for ; f != nil && n > 0; f = f.enclosing {
		if f.retries != nil {
			f.retries.Add(int64(n))
		}
	}
}

// countAlone makes the frame count its steps separately, from 0.
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

// result returns the last result of a node, in this frame or an outer one.
func (f *frame) result(name string) (any, bool) {
	for ; f != nil; f = f.outer {
		if v, ok := f.nodes.result(name); ok {
			return v, true
		}
	}
	return nil, false
}

// ownResult returns the last result of a node in this frame, nil if there is none.
func (f *frame) ownResult(name string) any {
	v, _ := f.nodes.result(name)
	return v
}

// allResults returns all node results that are visible from here.
func (f *frame) allResults() map[string]any {
	all := map[string]any{}
	if f.outer != nil {
		all = f.outer.allResults()
	}
	f.nodes.copyResults(all)
	return all
}

// hasNode reports whether a node with the name is visible from here.
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

// itemVar returns an item variable that is visible from here.
func (f *frame) itemVar(name string) (any, bool) {
	for ; f != nil; f = f.outer {
		switch name {
		case "": // a frame without an item
		case f.item.indexName:
			return f.item.index, true
		case f.item.name:
			return f.item.value, true
		}
	}
	return nil, false
}

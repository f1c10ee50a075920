package engine

import (
	"context"
	"maps"

	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/host/internal/state"
)

// frame is one sequence of nodes on one state. It belongs to one goroutine.
type frame struct {
	run    *run
	graph  *graph.Graph
	prefix string
	state  *state.State
	// visits counts the visits of each node, by its index.
	visits []int
	// outer is the frame around a branch, loop body or map item, for results
	// and item variables; nil for a run and a subgraph.
	outer *frame
	// results are the last results of the nodes in this frame.
	results map[string]any
	// items are a map's item and index.
	items map[string]any
	// joined are the results of the fan-out that ends at the next node.
	joined []any
	// route is where the present node leads; standIn replaces that of the
	// next one, a fallback without routing of its own.
	route, standIn *graph.Route
	// deltas are the changes so far, for the frame around; failures the
	// entries of __errors__.
	deltas   []delta
	failures []any
	// only is the path of the one node of a map's branch.
	only string
	// replayOnly stops the frame at the first node that is not recorded.
	replayOnly bool
	// inputDone says that the input of a resume was merged here, or does not
	// belong here.
	inputDone bool
}

func newFrame(r *run, g *graph.Graph, values map[string]any) *frame {
	return &frame{run: r, graph: g, state: state.New(values)}
}

// inner makes a frame inside this one, with a fork of its state. begun says
// that the frame's container was at work when the run stopped: only then does
// the input of a resume belong in here too.
func (f *frame) inner(g *graph.Graph, prefix string, base *state.State, begun bool) *frame {
	return &frame{inputDone: !begun, run: f.run, graph: g, prefix: prefix, state: base.Fork(), outer: f, replayOnly: f.replayOnly}
}

// walk runs the frame's graph from its start to its end.
func (f *frame) walk(ctx context.Context) error {
	way, err := f.decideStart(ctx)
	if err != nil {
		return err
	}
	next, err := f.take(ctx, visitPath(f.prefix, spec.Start, 1), way)
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

// count counts a visit of a node.
func (f *frame) count(n *graph.Node) int {
	if n.Index >= len(f.visits) {
		f.visits = append(f.visits, make([]int, max(n.Index+1, len(f.graph.Nodes))-len(f.visits))...)
	}
	f.visits[n.Index]++
	return f.visits[n.Index]
}

// result finds the last result of a node, here or in a frame around.
func (f *frame) result(name string) (any, bool) {
	for ; f != nil; f = f.outer {
		if v, ok := f.results[name]; ok {
			return v, true
		}
	}
	return nil, false
}

// allResults is every node result that can be seen from here.
func (f *frame) allResults() map[string]any {
	if f.outer == nil {
		return f.results
	}
	all := maps.Clone(f.outer.allResults())
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, f.results)
	return all
}

func (f *frame) setResult(name string, v any) {
	if f.results == nil {
		f.results = map[string]any{}
	}
	f.results[name] = v
}

// allItems are the item variables that can be seen from here.
func (f *frame) allItems() map[string]any {
	if f.outer == nil {
		return f.items
	}
	outer := f.outer.allItems()
	if len(f.items) == 0 {
		return outer
	}
	if len(outer) == 0 {
		return f.items
	}
	all := maps.Clone(outer)
	maps.Copy(all, f.items)
	return all
}

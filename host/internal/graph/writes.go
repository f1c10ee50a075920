package graph

import (
	"slices"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/spec"
)

// parallelWrites warns where two branches without a fan-in node write one key
// that has no reducer: the branch written last wins.
func (c *compiler) parallelWrites(g *Graph) {
	each := func(r *Route, n *Node) {
		if r.FanOut == nil || r.FanOut.Join != nil {
			return
		}
		writer := map[string]string{}
		for _, b := range r.FanOut.Branches {
			for _, key := range branchWrites(b.Entry) {
				first, twice := writer[key]
				if !twice {
					writer[key] = b.Entry.Name
					continue
				}
				if first == b.Entry.Name || g.Schema.Reducer(key) != spec.ReduceReplace {
					continue
				}
				pos := b.Entry.Spec.Pos
				c.diags.Warnf(diagcode.ParallelWrites, pos, "give the key a reducer in state_schema, or the fan-out a fan_in node",
					"the branches %q and %q both write the state key %q; the one written last wins", first, b.Entry.Name, key)
			}
		}
	}
	each(&g.Start, nil)
	for _, n := range g.Nodes {
		each(&n.Route, n)
	}
}

// branchWrites lists the keys that are known to be written in a branch.
func branchWrites(entry *Node) []string {
	var keys []string
	for n := range distances(entry) {
		keys = append(keys, Writes(n)...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Writes lists the state keys that a node's output names. What Lua returns or
// an object result holds is not known before the run.
func Writes(n *Node) []string {
	var out *Output
	switch b := n.Body.(type) {
	case *Action:
		out = b.Output
	case *Lua:
		out = b.Output
	case *Loop:
		out = b.Output
	case *Map:
		out = b.Output
	case *Subgraph:
		out = b.Output
	case *Steps:
		var keys []string
		for _, step := range b.Steps {
			keys = append(keys, Writes(step)...)
		}
		return keys
	}
	if out == nil {
		return nil
	}
	if out.Key != "" {
		return []string{out.Key}
	}
	keys := make([]string, len(out.Fields))
	for i, f := range out.Fields {
		keys[i] = f.Key
	}
	return keys
}

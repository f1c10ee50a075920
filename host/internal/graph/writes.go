package graph

import (
	"slices"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// errorsKey is the state key of the failures after which a run continued.
const errorsKey = "__errors__"

// Writes returns the state keys that a node is known to write. all is false if it
// may write others too, because the result of a Lua chunk or an action is not
// always known.
func Writes(n *Node) (keys []string, all bool) {
	switch b := n.Body.(type) {
	case *Action:
		if b.Output == nil {
			return resultKeys(b.result)
		}
		return b.Output.keys(), true
	case *Lua:
		switch {
		case b.Output != nil:
			return b.Output.keys(), true
		case b.Chunk == nil:
			return nil, false // a syntax error
		}
		return b.Chunk.ReturnKeys()
	case *Steps:
		return writesOf(nil, b.Steps)
	case *Loop:
		return writesOf(b.Output, b.Body.Nodes)
	case *Map:
		if b.FanIn != nil {
			return b.Output.keys(), true
		}
		return writesOf(b.Output, []*Node{b.Each})
	case *Subgraph:
		return b.Output.keys(), b.Output != nil
	}
	return nil, true
}

func writesOf(o *Output, nodes []*Node) (keys []string, all bool) {
	keys, all = o.keys(), true
	for _, n := range nodes {
		more, known := Writes(n)
		keys, all = append(keys, more...), all && known
	}
	return keys, all
}

// keys returns the state keys of an output.
func (o *Output) keys() []string {
	switch {
	case o == nil:
		return nil
	case o.Key != "":
		return []string{o.Key}
	}
	keys := make([]string, len(o.Fields))
	for i, f := range o.Fields {
		keys[i] = f.Key
	}
	return keys
}

// resultKeys returns the members that an action's result merges into the state.
func resultKeys(s *schema.Schema) (keys []string, all bool) {
	if s == nil || len(s.Type) == 0 {
		return nil, false
	}
	if !slices.Contains(s.Type, "object") {
		return nil, true // stored under the node's name
	}
	for _, name := range s.Properties.Names() {
		if name != "success" {
			keys = append(keys, name)
		}
	}
	return keys, s.AdditionalProperties != nil && s.AdditionalProperties.Never
}

// stateKeys collects the keys of a workflow's state, with the names of nodes, whose
// results may be stored under them. all is false if there may be others.
func stateKeys(g *Graph) (keys map[string]bool, all bool) {
	keys, all = declaredKeys(g)
	eachNode(g.Nodes, func(n *Node) { keys[n.Name] = true })
	return keys, all
}

// declaredKeys is [stateKeys] without the names of nodes.
func declaredKeys(g *Graph) (keys map[string]bool, all bool) {
	keys = map[string]bool{errorsKey: true}
	for key := range g.Workflow.InitialState {
		keys[key] = true
	}
	for _, k := range g.Workflow.Schema {
		keys[k.Name] = true
	}
	all = true
	eachNode(g.Nodes, func(n *Node) {
		written, known := Writes(n)
		for _, key := range written {
			keys[key] = true
		}
		all = all && known
		if m, ok := n.Body.(*Map); ok {
			keys[m.ItemVar], keys[m.IndexVar] = true, true
		}
	})
	return keys, all
}

// eachNode visits nodes and the nodes inside them, except those of subgraphs.
func eachNode(nodes []*Node, visit func(*Node)) {
	for _, n := range nodes {
		visit(n)
		switch b := n.Body.(type) {
		case *Steps:
			eachNode(b.Steps, visit)
		case *Loop:
			eachNode(b.Body.Nodes, visit)
		case *Map:
			eachNode([]*Node{b.Each}, visit)
		}
	}
}

// parallelWrites warns of two branches, or of the items of a map, without a fan-in
// node that write one key without a reducer: the last one wins.
func (c *compiler) parallelWrites(g *Graph) {
	eachNode(g.Nodes, func(n *Node) {
		m, ok := n.Body.(*Map)
		if !ok || m.FanIn != nil || m.Output != nil {
			return
		}
		for _, key := range itemWrites(m.Each) {
			if g.Schema.Reducer(key) == spec.ReduceReplace {
				c.diags.Warnf(diagcode.ParallelWrites, n.Spec.Pos, "give the key a reducer in state_schema, the map a fan_in node, or the node after it fan_in: true",
					"each item of the map %q writes the state key %q; the last item's value wins", n.Name, key)
			}
		}
	})
	for _, r := range g.allRoutes() {
		if r.FanOut == nil || r.FanOut.Join != nil {
			continue
		}
		writer := map[string]*Node{}
		for _, b := range r.FanOut.Branches {
			for _, key := range branchWrites(b.Entry) {
				first, twice := writer[key]
				if !twice {
					writer[key] = b.Entry
				} else if g.Schema.Reducer(key) == spec.ReduceReplace {
					c.diags.Warnf(diagcode.ParallelWrites, b.Entry.Spec.Pos, "give the key a reducer in state_schema, or the fan-out a fan_in node",
						"the branches %q and %q both write the state key %q; the one written last wins", first.Name, b.Entry.Name, key)
				}
			}
		}
	}
}

// itemWrites returns the keys that an item of a map writes last according to the file. It does not know the members of
// an action's result, or the values that steps pass on.
func itemWrites(each *Node) []string {
	switch b := each.Body.(type) {
	case *Action:
		return b.Output.keys()
	case *Steps:
		if n := len(b.Steps); n > 0 {
			return itemWrites(b.Steps[n-1])
		}
	case *Lua, *Subgraph:
		keys, _ := Writes(each)
		return keys
	}
	return nil
}

// branchWrites returns the keys that a branch is known to write.
func branchWrites(entry *Node) []string {
	var keys []string
	for n := range distances(entry) {
		written, _ := Writes(n)
		keys = append(keys, written...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

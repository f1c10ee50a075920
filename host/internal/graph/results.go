package graph

import (
	"slices"

	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/host/internal/script"
)

// resultsRoot is the template root of the branch results in a fan-in node.
const resultsRoot = "parallel_results"

// readers records for every fan-in node whether it reads the results of the
// branches. If it does not, a failed branch fails the run.
func (c *compiler) readers(g *Graph) {
	note := func(join *Node) {
		if join != nil {
			join.GuardReadsResults = c.conditionReads(join.If)
			join.ReadsResults = c.nodeReads(join)
		}
	}
	for _, r := range g.allRoutes() {
		if r.FanOut != nil {
			note(r.FanOut.Join)
		}
	}
	for _, n := range g.Nodes {
		if m, ok := n.Body.(*Map); ok {
			note(m.FanIn)
		}
	}
}

func (c *compiler) nodeReads(n *Node) bool {
	if c.conditionReads(n.If) {
		return true
	}
	switch b := n.Body.(type) {
	case *Action:
		return valueReads(b.With) || outputReads(b.Output)
	case *Lua:
		return c.chunkReads(b.Chunk, nil) || outputReads(b.Output)
	case *Steps:
		return slices.ContainsFunc(b.Steps, c.nodeReads)
	case *Loop: // its body does not have them
		return outputReads(b.Output)
	case *Map:
		return valueReads(b.Items) || outputReads(b.Output)
	case *Subgraph:
		return valueReads(b.Input) || outputReads(b.Output)
	}
	return false
}

func (c *compiler) conditionReads(cond *Condition) bool {
	switch {
	case cond == nil:
		return false
	case cond.template != nil:
		return templateReads(cond.template)
	}
	return c.chunkReads(cond.chunk, nil)
}

// chunkReads also checks the modules that the chunk requires.
func (c *compiler) chunkReads(chunk *script.Chunk, seen []*script.Chunk) bool {
	if chunk == nil || slices.Contains(seen, chunk) {
		return false
	}
	if chunk.Reads(resultsRoot) {
		return true
	}
	seen = append(seen, chunk)
	for _, name := range chunk.Requires() {
		if m := c.env.Modules[name]; m != nil && c.chunkReads(m.Chunk, seen) {
			return true
		}
	}
	return false
}

func outputReads(o *Output) bool {
	return o != nil && slices.ContainsFunc(o.Fields, func(f OutputField) bool { return valueReads(f.Value) })
}

func valueReads(v *expr.Value) bool {
	return v != nil && slices.ContainsFunc(v.Templates(), func(t expr.Located) bool { return templateReads(t.Template) })
}

func templateReads(t *expr.Template) bool {
	return slices.ContainsFunc(t.Roots(), func(r expr.Ref) bool { return r.Root == resultsRoot })
}

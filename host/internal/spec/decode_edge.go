package spec

import (
	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/source"
)

// maxEdges bounds the edges of a file; each target in a list counts as one.
const maxEdges = 100_000

func (d *decoder) edges(v element) []*Edge {
	var edges []*Edge
	count := 0
	for _, item := range v.items() {
		if !item.is(source.Map) {
			continue
		}
		e := d.edge(item)
		if count += max(1, len(e.To), len(e.Targets)); count > maxEdges {
			d.errorf(diagcode.FileTooLarge, e.Pos, "use a map (type: dynamic_parallel) for many equal branches", "the workflow has more than %d edges", maxEdges)
			return nil
		}
		edges = append(edges, e)
	}
	return edges
}

func (d *decoder) edge(v element) *Edge {
	m := openMapping(v, d.grammar.edge)
	e := &Edge{
		Pos: m.pos(), When: m.text("when"), Condition: m.text("condition"),
		Default: targetOf(m.text("default")), FanIn: targetOf(m.text("fan_in")),
		Parallel: m.has("parallel") || m.string("type") == "parallel",
	}
	if from := m.text("from"); from != nil {
		e.From = target(*from)
	}
	for _, key := range []string{"to", "parallel"} {
		for _, t := range m.texts(key) {
			e.To = append(e.To, target(t))
		}
	}
	for _, entry := range m.get("targets").entries() {
		if entry.is(source.String) {
			e.Targets = append(e.Targets, Target{Result: entry.key.Text, To: target(entry.text())})
		}
	}
	if m.get("to").is(source.List) && len(e.To) > 1 {
		e.Parallel = true
	}
	d.checkEdge(m, e)
	return e
}

// checkEdge reports keys of an edge that exclude or require each other.
func (d *decoder) checkEdge(m mapping, e *Edge) {
	exclude := func(a, b, hint string) {
		if m.has(a) && m.has(b) {
			d.conflict(m.key(b), hint, "an edge cannot have both %s and %s", a, b)
		}
	}
	exclude("to", "parallel", "list all branches in one of them")
	exclude("when", "condition", "when guards one edge, condition chooses among targets")
	exclude("condition", "parallel", "condition chooses one of targets")
	switch {
	case m.has("condition") && !m.has("targets") && m.has("to"):
		d.conflict(m.key("condition"), "write when: to guard one edge, or targets: with a node for each result", "condition needs targets")
	case m.has("condition") && !m.has("targets"):
		d.errorf(diagcode.MissingKey, m.pos(), "add targets: with a node for each result", "condition needs targets")
	case m.has("condition"):
		exclude("condition", "to", "condition chooses one of targets")
	case m.has("targets") || m.has("default"):
		key := "targets"
		if !m.has(key) {
			key = "default"
		}
		d.conflict(m.key(key), "add condition: with Lua code that returns the name of a target", "%s needs condition", key)
	case !m.has("to") && !m.has("parallel"):
		d.errorf(diagcode.MissingKey, m.pos(), "add to: with the target", "to is missing")
	}
	if m.has("fan_in") && !e.Parallel {
		d.conflict(m.key("fan_in"), "add type: parallel, or list the branches in parallel:", "fan_in needs parallel branches")
	}
}

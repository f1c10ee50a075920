package inspect

import (
	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/spec"
)

// Diagram is a graph as it is shown: the workflow, a loop's body or a
// subgraph.
type Diagram struct {
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	File        string `json:"file,omitempty"`
	Nodes       []Node `json:"nodes"`
	Edges       []Edge `json:"edges"`
}

// Node is one node.
type Node struct {
	Name string `json:"name"`
	// Kind is action, lua, steps, loop, map, subgraph or pass.
	Kind string `json:"kind"`
	// Uses is the action that is called.
	Uses        string `json:"uses,omitempty"`
	Description string `json:"description,omitempty"`
	// If is the condition under which the node runs.
	If string `json:"if,omitempty"`
	// Notes say what else is special, such as "retry 3".
	Notes []string `json:"notes,omitempty"`
	Line  int      `json:"line,omitempty"`
	// Steps are the steps of a node of kind steps, or of a map's item.
	Steps []Node `json:"steps,omitempty"`
	// Status is that of the node in a run: done, failed, waiting, skipped or
	// unreached; "" where the diagram is of no run.
	Status string `json:"status,omitempty"`
	// Body is what a loop repeats, or a subgraph.
	Body *Diagram `json:"body,omitempty"`
}

// Edge leads from one node to another; the ends are __start__ and __end__.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Kind is next, when, switch, goto, parallel, map, fallback or repeat.
	Kind string `json:"kind"`
	// Label is the condition, or the result that a switch gave.
	Label string `json:"label,omitempty"`
}

// The kinds of edges.
const (
	next     = "next"
	when     = "when"
	choice   = "switch"
	jump     = "goto"
	parallel = "parallel"
	each     = "map"
	fallback = "fallback"
	repeat   = "repeat"
)

// otherwise labels the edge that is taken where no other one is.
const otherwise = "otherwise"

// New describes a graph.
func New(g *graph.Graph) *Diagram {
	wf := g.Workflow
	d := describe(g)
	d.Name, d.Description, d.File = wf.Name, wf.Description, wf.File
	return d
}

func describe(g *graph.Graph) *Diagram {
	d := &Diagram{Nodes: make([]Node, 0, len(g.Nodes)), Edges: []Edge{}}
	d.route(spec.Start, &g.Start)
	for _, n := range g.Nodes {
		d.Nodes = append(d.Nodes, node(n))
		if m, ok := n.Body.(*graph.Map); ok && m.FanIn != nil {
			d.edge(n.Name, graph.Target{Node: m.FanIn}, each, "")
		} else {
			d.route(n.Name, &n.Route)
		}
		if n.Fallback != nil {
			d.edge(n.Name, graph.Target{Node: n.Fallback}, fallback, "on failure")
		}
	}
	return d
}

func (d *Diagram) edge(from string, to graph.Target, kind, label string) {
	d.Edges = append(d.Edges, Edge{From: from, To: to.Name(), Kind: kind, Label: label})
}

// route adds the edges of a node in the order in which they are tried.
func (d *Diagram) route(from string, r *graph.Route) {
	for _, rule := range r.Goto {
		d.edge(from, rule.To, jump, guard(rule.If, len(r.Goto) > 1))
	}
	if len(r.Goto) > 0 {
		return
	}
	if r.FanOut != nil {
		for _, b := range r.FanOut.Branches {
			d.edge(from, graph.Target{Node: b.Entry}, parallel, guard(b.When, false))
		}
	}
	for _, arm := range r.Arms {
		if arm.Switch == nil {
			d.edge(from, arm.To, when, guard(arm.When, false))
			continue
		}
		for _, t := range arm.Switch.Targets {
			d.edge(from, t.To, choice, t.Result)
		}
		if arm.Switch.Default != nil {
			d.edge(from, *arm.Switch.Default, choice, otherwise)
		}
	}
	if r.Default != nil {
		label := ""
		if len(r.Arms) > 0 {
			label = otherwise
		}
		d.edge(from, *r.Default, next, label)
	}
	if r.Implicit != nil {
		d.edge(from, *r.Implicit, next, "")
	}
}

func guard(c *graph.Condition, others bool) string {
	switch {
	case c != nil:
		return oneLine(c.Value)
	case others:
		return otherwise
	}
	return ""
}

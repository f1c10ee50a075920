package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/spec"
)

// Diagram is a graph prepared for display: the workflow, a loop's body or a
// subgraph. It is immutable after [New], except for the statuses that a caller
// sets.
type Diagram struct {
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	File        string `json:"file,omitempty"`
	Nodes       []Node `json:"nodes"`
	Edges       []Edge `json:"edges"`
	// Style is CSS in addition to the common style.
	Style string `json:"-"`
}

// Node is one node.
type Node struct {
	Name string `json:"name"`
	// Kind is action, lua, steps, loop, map, subgraph or pass; in a graph of
	// entities, entity.
	Kind string `json:"kind"`
	// Uses is the called action.
	Uses        string `json:"uses,omitempty"`
	Description string `json:"description,omitempty"`
	// If is the condition under which the node runs.
	If string `json:"if,omitempty"`
	// Notes has further properties, such as "retry 3".
	Notes []string `json:"notes,omitempty"`
	Line  int      `json:"line,omitempty"`
	// Steps are the steps of a node of kind steps, or of a map's item.
	Steps []Node `json:"steps,omitempty"`
	// Status is the status of the node in a run: running, done, failed,
	// stopped, waiting, skipped or unreached; "" if the diagram does not show a run.
	Status string `json:"status,omitempty"`
	// Body is the body of a loop, or a subgraph.
	Body *Diagram `json:"body,omitempty"`
	// Class is the CSS class of the node; "" for the class of its kind.
	Class string `json:"-"`
}

// Edge leads from one node to another; the ends are __start__ and __end__.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Kind is next, when, switch, goto, parallel, map, fallback or repeat; in a graph
	// of entities, relation.
	Kind string `json:"kind"`
	// Label is the condition, or the result of a switch.
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

// otherwise is the label of the default edge.
const otherwise = "otherwise"

// New returns the diagram of a graph.
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

func node(n *graph.Node) Node {
	out := Node{Name: n.Name, Description: n.Spec.Description, Line: n.Spec.Line, Notes: notes(n)}
	if n.If != nil {
		out.If = oneLine(n.If.Value)
	}
	body(&out, n.Body)
	return out
}

func body(out *Node, b graph.Body) {
	switch b := b.(type) {
	case *graph.Action:
		out.Kind, out.Uses = "action", b.Uses
	case *graph.Lua:
		out.Kind = "lua"
	case *graph.Steps:
		out.Kind = "steps"
		for _, step := range b.Steps {
			out.Steps = append(out.Steps, node(step))
		}
	case *graph.Loop:
		out.Kind, out.Body = "loop", describe(b.Body)
		condition := ""
		if b.Condition != nil {
			condition = "while " + oneLine(b.Condition.Value)
			out.Notes = append(out.Notes, condition)
		}
		out.Body.Edges = append(out.Body.Edges, Edge{From: end, To: start, Kind: repeat, Label: condition})
		out.Notes = append(out.Notes, fmt.Sprintf("at most %d iterations", b.MaxIterations))
	case *graph.Map:
		var item Node
		body(&item, b.Each.Body)
		out.Kind, out.Uses, out.Steps, out.Body = "map", item.Uses, item.Steps, item.Body
		out.Notes = append(out.Notes, "for each "+b.ItemVar)
	case *graph.Subgraph:
		out.Kind = "subgraph"
		if b.Graph != nil {
			out.Body = New(b.Graph)
		}
	default:
		out.Kind = "pass"
	}
}

// notes describes the properties of a node other than its body.
func notes(n *graph.Node) []string {
	var out []string
	if n.Retry.MaxRetries > 0 {
		out = append(out, fmt.Sprintf("retry %d", n.Retry.MaxRetries))
	}
	if n.Timeout > 0 {
		out = append(out, "timeout "+n.Timeout.String())
	}
	if n.OnError == spec.OnErrorContinue {
		out = append(out, "continues after a failure")
	}
	if n.InterruptBefore {
		out = append(out, "interrupt before")
	}
	if n.InterruptAfter {
		out = append(out, "interrupt after")
	}
	return out
}

// collapsed returns the diagram without the insides of its nodes.
func (d *Diagram) collapsed() *Diagram {
	out := *d
	out.Nodes = slices.Clone(d.Nodes)
	for i := range out.Nodes {
		n := &out.Nodes[i]
		inside := len(n.Steps)
		if n.Body != nil {
			inside = len(n.Body.Nodes)
		}
		if inside > 0 {
			n.Notes = append(slices.Clone(n.Notes), fmt.Sprintf("%d inside", inside))
		}
		n.Body, n.Steps = nil, nil
	}
	return &out
}

// what describes a node's body in a few words.
func (n *Node) what() string {
	switch {
	case n.Kind == "map" && n.Uses != "":
		return "map of " + n.Uses
	case n.Uses != "":
		return n.Uses
	}
	return n.Kind
}

const mostLabel = 60

// oneLine shortens a condition to fit next to an arrow.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > mostLabel {
		return string(runes[:mostLabel-1]) + "…"
	}
	return text
}

package graph

import (
	"slices"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/sdk/diag"
)

// Check finds what runs but is probably not meant: nodes that nothing leads
// to, and keys of the state that are read but never written.
func Check(g *Graph) diag.List {
	var diags diag.List
	unreachable(g, &diags)
	neverWritten(g, &diags)
	diags.Sort()
	return diags
}

func unreachable(g *Graph, diags *diag.List) {
	reached := map[*Node]bool{}
	for _, start := range g.Start.Targets() {
		if start == nil {
			continue
		}
		for n := range distances(start) {
			reached[n] = true
		}
	}
	for _, n := range g.Nodes {
		if !reached[n] {
			diags.Warnf(diagcode.Unreachable, n.Spec.Pos, "add an edge to it, or remove it", "nothing leads to the node %q", n.Name)
		}
		if loop, ok := n.Body.(*Loop); ok {
			unreachable(loop.Body, diags)
		}
	}
}

// neverWritten needs every write to be known: one Lua node or merged object
// result may write anything, and then there is nothing to say.
func neverWritten(g *Graph, diags *diag.List) {
	wf := g.Workflow
	written := map[string]bool{}
	for key := range wf.InitialState {
		written[key] = true
	}
	for _, k := range wf.Schema {
		written[k.Name] = true
	}
	for _, n := range g.Nodes {
		if writesAnything(n) {
			return
		}
		written[n.Name] = true
		for _, key := range Writes(n) {
			written[key] = true
		}
	}
	each := func(t *expr.Template, pos func(line, column int) diag.Pos) {
		for _, ref := range t.Roots() {
			if ref.Root != "state" || len(ref.Path) == 0 || written[ref.Path[0]] {
				continue
			}
			var known []string
			for key := range written {
				known = append(known, key)
			}
			slices.Sort(known)
			hint := diag.Suggest(ref.Path[0], known)
			if hint == "" {
				hint = "declare it in state_schema if the input brings it"
			}
			diags.Warnf(diagcode.NeverWritten, pos(ref.Line, ref.Column), hint, "the state key %q is read but nothing writes it", ref.Path[0])
		}
	}
	for _, n := range g.Nodes {
		eachTemplate(n, each)
	}
}

func writesAnything(n *Node) bool {
	switch b := n.Body.(type) {
	case *Action:
		return b.Output == nil
	case *Lua:
		return b.Output == nil
	case *Subgraph:
		return b.Output == nil
	case *Steps:
		return slices.ContainsFunc(b.Steps, writesAnything)
	case *Loop:
		return slices.ContainsFunc(b.Body.Nodes, writesAnything)
	case *Map:
		return b.FanIn == nil && writesAnything(b.Each)
	}
	return false
}

// eachTemplate visits the templates of a node's conditions and parameters
// with a function that places them in the file.
func eachTemplate(n *Node, visit func(t *expr.Template, pos func(line, column int) diag.Pos)) {
	condition := func(c *Condition) {
		if c != nil && c.template != nil {
			visit(c.template, c.Text.At)
		}
	}
	value := func(v *expr.Value) {
		if v == nil {
			return
		}
		for _, located := range v.Templates() {
			visit(located.Template, func(int, int) diag.Pos { return n.Spec.Pos })
		}
	}
	condition(n.If)
	for _, arm := range n.Route.Arms {
		condition(arm.When)
		if arm.Switch != nil {
			condition(arm.Switch.Condition)
		}
	}
	for _, rule := range n.Route.Goto {
		condition(rule.If)
	}
	switch b := n.Body.(type) {
	case *Action:
		value(b.With)
	case *Map:
		value(b.Items)
	case *Subgraph:
		value(b.Input)
	case *Loop:
		condition(b.Condition)
	}
}

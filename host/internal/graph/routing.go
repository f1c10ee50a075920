package graph

import (
	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/spec"
)

// routes sets the routes of the start and of each node.
func (c *compiler) routes(g *Graph, edges []*spec.Edge, roots []string) {
	bySource := map[string][]*spec.Edge{}
	for _, e := range edges {
		switch e.From.Value {
		case spec.Start:
		case spec.End:
			c.diags.Errorf(diagcode.UnknownTarget, e.From.Pos, "name a node", "no edge leaves %s", spec.End)
		default:
			c.lookup(g, e.From)
		}
		bySource[e.From.Value] = append(bySource[e.From.Value], e)
	}
	g.Start = c.route(g, nil, bySource[spec.Start], roots)
	if len(bySource[spec.Start]) == 0 && len(g.Nodes) > 0 {
		g.Start.Implicit = &Target{Node: g.Nodes[0]}
	}
	for i, n := range g.Nodes {
		n.Route = c.route(g, n, bySource[n.Name], roots)
		for at, rule := range n.Spec.Goto {
			if at > 0 && n.Spec.Goto[at-1].If == nil {
				c.diags.Warnf(diagcode.NoWayOut, rule.Pos, "put the rule without if: last", "this rule is never tried: the one before it is always true")
			}
			n.Route.Goto = append(n.Route.Goto, Rule{If: c.condition(rule.If, roots), To: c.lookup(g, rule.To)})
		}
		if i+1 < len(g.Nodes) {
			n.following = g.Nodes[i+1]
		}
		if len(n.Spec.Goto) == 0 && len(bySource[n.Name]) == 0 {
			n.Route.Implicit = &Target{Node: n.following}
		}
	}
}

func (c *compiler) route(g *Graph, from *Node, edges []*spec.Edge, roots []string) Route {
	var r Route
	var fanIn *spec.Text
	for _, e := range edges {
		if e.Parallel || len(e.To) > 1 {
			if r.FanOut == nil {
				r.FanOut = &FanOut{Policy: c.fanOutPolicy(from)}
			}
			when := c.condition(e.When, roots)
			for _, to := range e.To {
				c.branch(g, &r, to, when)
			}
			fanIn = c.oneFanIn(fanIn, e.FanIn)
			continue
		}
		c.arm(g, &r, e, roots)
	}
	if fanIn != nil {
		r.FanOut.Join = c.join(g, *fanIn)
	}
	return r
}

// join resolves the name of a fan-in node.
func (c *compiler) join(g *Graph, name spec.Text) *Node {
	if name.Value == spec.End {
		c.diags.Errorf(diagcode.UnknownTarget, name.Pos, "name a node, or remove fan_in", "%s cannot be a fan-in node", spec.End)
		return nil
	}
	return c.lookup(g, name).Node
}

func (c *compiler) fanOutPolicy(from *Node) Parallel {
	var own *spec.Parallel
	if from != nil {
		own = from.Spec.Parallel
	}
	return resolveParallel(own, c.wf.Config.Parallel, c.wf.Config.MaxConcurrency)
}

func (c *compiler) branch(g *Graph, r *Route, to spec.Text, when *Condition) {
	target := c.lookup(g, to)
	if target.Node == nil {
		if to.Value == spec.End {
			c.diags.Errorf(diagcode.UnknownTarget, to.Pos, "name a node", "a parallel branch cannot begin at %s", spec.End)
		}
		return
	}
	if r.FanOut.entries[target.Node] {
		c.diags.Errorf(diagcode.FanInNotReached, to.Pos, "give each branch its own node", "two branches begin at the node %q", to.Value)
		return
	}
	if r.FanOut.entries == nil {
		r.FanOut.entries = map[*Node]bool{}
	}
	r.FanOut.entries[target.Node] = true
	r.FanOut.Branches = append(r.FanOut.Branches, Branch{Entry: target.Node, When: when})
}

func (c *compiler) oneFanIn(have, next *spec.Text) *spec.Text {
	if have != nil && next != nil && have.Value != next.Value {
		c.diags.Errorf(diagcode.FanInNotReached, next.Pos, "all branches of one fan-out end at the same node", "the branches end at %q and at %q", have.Value, next.Value)
	}
	if have == nil {
		return next
	}
	return have
}

func (c *compiler) arm(g *Graph, r *Route, e *spec.Edge, roots []string) {
	if e.Condition != nil {
		sw := &Switch{Pos: e.Condition.Pos, Condition: c.condition(e.Condition, roots)}
		for _, t := range e.Targets {
			sw.Targets = append(sw.Targets, SwitchTarget{Result: t.Result, To: c.lookup(g, t.To)})
		}
		if e.Default != nil {
			to := c.lookup(g, *e.Default)
			sw.Default = &to
		}
		r.Arms = append(r.Arms, Arm{Switch: sw})
		return
	}
	if len(e.To) == 0 {
		return // already reported
	}
	to := c.lookup(g, e.To[0])
	if e.When != nil {
		r.Arms = append(r.Arms, Arm{When: c.condition(e.When, roots), To: to})
		return
	}
	if r.Default != nil {
		c.diags.Warnf(diagcode.NoWayOut, e.Pos, "add when: to one of them, or type: parallel to both",
			"a second edge without when leaves %q; only the first is taken", e.From.Value)
		return
	}
	r.Default = &to
}

package graph

import (
	"slices"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/sdk/diag"
)

// routes fills in where each node, and the start, leads.
func (c *compiler) routes(g *Graph, edges []*spec.Edge, roots []string) {
	bySource := map[string][]*spec.Edge{}
	for _, e := range edges {
		if e.From.Value != spec.Start {
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
		for _, rule := range n.Spec.Goto {
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
		r.FanOut.Join = c.lookup(g, *fanIn).Node
	}
	return r
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
	for _, b := range r.FanOut.Branches {
		if b.Entry == target.Node {
			c.diags.Errorf(diagcode.FanInNotReached, to.Pos, "give each branch a node of its own", "two branches begin at the node %q", to.Value)
			return
		}
	}
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
		return // the loader has said so
	}
	to := c.lookup(g, e.To[0])
	if e.When != nil {
		r.Arms = append(r.Arms, Arm{When: c.condition(e.When, roots), To: to})
		return
	}
	if r.Default != nil {
		c.diags.Warnf(diagcode.NoWayOut, e.Pos, "add when: to one of them, or type: parallel to both",
			"a second edge without when leaves %q; only the first is ever taken", e.From.Value)
		return
	}
	r.Default = &to
}

// joins settles where branches end: implicit chaining never leads from one
// branch into another, and a fan-out that names no fan-in node gets the
// nearest one.
func (c *compiler) joins(g *Graph) {
	c.join(&g.Start, diag.Pos{File: c.wf.File})
	for _, n := range g.Nodes {
		c.join(&n.Route, n.Spec.Pos)
	}
}

func (c *compiler) join(r *Route, pos diag.Pos) {
	if r.FanOut == nil {
		return
	}
	for _, b := range r.FanOut.Branches {
		r.FanOut.closeChain(b.Entry)
	}
	if r.FanOut.Join == nil {
		r.FanOut.Join = nearestCommon(r.FanOut.Branches)
		return
	}
	for _, b := range r.FanOut.Branches {
		if _, ok := distances(b.Entry)[r.FanOut.Join]; !ok {
			c.diags.Warnf(diagcode.FanInNotReached, pos, "add an edge from the branch to the fan-in node",
				"the branch that begins at %q never reaches the fan-in node %q", b.Entry.Name, r.FanOut.Join.Name)
		}
	}
}

// closeChain follows the implicit chain from a branch's entry. Where it would
// run into another branch it skips to the fan-in node or, where none is
// named, past the entries of the other branches.
func (f *FanOut) closeChain(n *Node) {
	entry := func(n *Node) bool {
		return slices.ContainsFunc(f.Branches, func(b Branch) bool { return b.Entry == n })
	}
	for seen := map[*Node]bool{}; n != nil && n != f.Join && !seen[n]; {
		seen[n] = true
		if n.Route.Implicit == nil {
			return
		}
		next := n.Route.Implicit.Node
		if next == nil || entry(next) {
			if f.Join == nil {
				for next != nil && entry(next) {
					next = next.following
				}
			} else {
				next = f.Join
			}
			n.Route.Implicit = &Target{Node: next}
		}
		n = next
	}
}

// nearestCommon finds the node that every branch reaches with the smallest
// largest distance; the one written first where several are equal. Nodes
// marked fan_in win over others.
func nearestCommon(branches []Branch) *Node {
	if len(branches) == 0 {
		return nil
	}
	worst := distances(branches[0].Entry)
	for _, b := range branches[1:] {
		reach := distances(b.Entry)
		for n, d := range worst {
			other, ok := reach[n]
			if !ok {
				delete(worst, n)
				continue
			}
			worst[n] = max(d, other)
		}
	}
	for _, b := range branches {
		delete(worst, b.Entry)
	}
	var best *Node
	better := func(a, b *Node) bool {
		if a.Spec.FanIn != b.Spec.FanIn {
			return a.Spec.FanIn
		}
		if worst[a] != worst[b] {
			return worst[a] < worst[b]
		}
		return a.Index < b.Index
	}
	for n := range worst {
		if best == nil || better(n, best) {
			best = n
		}
	}
	return best
}

// distances gives the nodes that can be reached from a node, itself at 0,
// each with the number of edges to it.
func distances(from *Node) map[*Node]int {
	dist := map[*Node]int{from: 0}
	queue := []*Node{from}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		next := n.Route.Targets()
		if m, ok := n.Body.(*Map); ok && m.FanIn != nil {
			next = []*Node{m.FanIn}
		}
		if n.Fallback != nil {
			next = append(next, n.Fallback)
		}
		for _, t := range next {
			if t == nil {
				continue
			}
			if _, seen := dist[t]; !seen {
				dist[t] = dist[n] + 1
				queue = append(queue, t)
			}
		}
		if n.Route.FanOut != nil && n.Route.FanOut.Join != nil {
			if _, seen := dist[n.Route.FanOut.Join]; !seen {
				dist[n.Route.FanOut.Join] = dist[n] + 1
				queue = append(queue, n.Route.FanOut.Join)
			}
		}
	}
	return dist
}

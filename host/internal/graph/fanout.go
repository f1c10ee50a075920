package graph

import (
	"maps"
	"slices"
	"sort"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// joiner determines where the branches of a graph's fan-outs end: implicit
// chaining never leads from one branch into another, and a fan-out without a
// fan-in node gets the nearest one.
type joiner struct {
	graph   *Graph
	diags   *diag.List
	settled map[*FanOut]bool
	// outer are the fan-outs that contain the current one.
	outer []*FanOut
	// inner has the entries of each finished fan-out and of the fan-outs inside it.
	inner map[*FanOut]map[*Node]bool
	// marked are the nodes with fan_in: true.
	marked []*Node
	// after caches nodeAfterEntries for the current fan-out.
	after map[*Node]*Node
	// joins are the fan-in nodes of the finished fan-outs; ending are the nodes
	// of branches without one.
	joins, ending map[*Node]bool
}

func (c *compiler) joins(g *Graph) {
	j := &joiner{
		graph: g, diags: c.diags, settled: map[*FanOut]bool{}, inner: map[*FanOut]map[*Node]bool{},
		joins: map[*Node]bool{}, ending: map[*Node]bool{},
	}
	for _, n := range g.Nodes {
		if n.Spec.FanIn {
			j.marked = append(j.marked, n)
		}
	}
	j.closeFanOut(&g.Start, diag.Pos{File: c.wf.File})
	for _, n := range g.Nodes {
		j.closeFanOut(&n.Route, n.Spec.Pos)
	}
}

// closeFanOut closes the branches of one fan-out, after the fan-outs inside it.
func (j *joiner) closeFanOut(r *Route, pos diag.Pos) {
	f := r.FanOut
	if f == nil || j.settled[f] {
		return
	}
	j.settled[f] = true
	j.closeInner(f)
	j.after = map[*Node]*Node{}
	for _, b := range f.Branches {
		j.closeBranch(f, b.Entry)
	}
	if f.Join != nil {
		j.checkReached(f, pos)
	} else {
		f.Join = nearestCommon(f.Branches)
	}
	if f.Join != nil {
		j.joins[f.Join] = true
		j.checkOwn(f, pos)
		return
	}
	for _, b := range f.Branches {
		for n := range reachable(b.Entry, f) {
			j.ending[n] = true
		}
	}
}

func (j *joiner) closeInner(f *FanOut) {
	j.outer = append(j.outer, f)
	entries := maps.Clone(f.entries)
	for _, b := range f.Branches {
		var inner []*Node
		for n := range reachable(b.Entry, f) {
			if n.Route.FanOut != nil && !j.settled[n.Route.FanOut] {
				inner = append(inner, n)
			}
		}
		sort.Slice(inner, func(i, k int) bool { return inner[i].Index < inner[k].Index })
		for _, n := range inner {
			if j.settled[n.Route.FanOut] {
				continue // reached by the previous branch
			}
			j.closeFanOut(&n.Route, n.Spec.Pos)
			maps.Copy(entries, j.inner[n.Route.FanOut])
		}
	}
	j.inner[f] = entries
	j.outer = j.outer[:len(j.outer)-1]
}

// checkReached warns of a branch that never reaches its fan-in node.
func (j *joiner) checkReached(f *FanOut, pos diag.Pos) {
	for _, b := range f.Branches {
		reached := false
		for n := range reachable(b.Entry, f) {
			reached = reached || j.ending[n] || slices.Contains(n.successors(), f.Join)
		}
		if !reached {
			j.diags.Warnf(diagcode.FanInNotReached, pos, "add an edge from the branch to the fan-in node",
				"the branch that begins at %q never reaches the fan-in node %q", b.Entry.Name, f.Join.Name)
		}
	}
}

// checkOwn warns of a fan-out that ends at the fan-in node of an outer one: the
// results of its branches are lost.
func (j *joiner) checkOwn(f *FanOut, pos diag.Pos) {
	if slices.ContainsFunc(j.outer, func(outer *FanOut) bool { return outer.Join == f.Join }) {
		j.diags.Warnf(diagcode.FanInNotReached, pos, "add a separate fan-in node before it",
			"the branches end at %q, the fan-in node of the fan-out around them, which does not get their results", f.Join.Name)
	}
}

// reachable collects the nodes of a branch: all nodes reachable from its entry,
// up to the fan-in node and the entries of the other branches.
func reachable(entry *Node, f *FanOut) map[*Node]bool {
	seen := map[*Node]bool{}
	f.walk(entry, seen, func(*Node) bool { return true })
	return seen
}

// walk visits the nodes of a branch depth-first as long as visit returns true.
func (f *FanOut) walk(entry *Node, seen map[*Node]bool, visit func(*Node) bool) {
	stack := []*Node{entry}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if n == nil || n == f.Join || seen[n] || n != entry && f.hasEntry(n) {
			continue
		}
		seen[n] = true
		if visit(n) {
			stack = append(stack, n.successors()...)
		}
	}
}

func (f *FanOut) hasEntry(n *Node) bool { return f.entries[n] }

// closeBranch finds the nodes of a branch whose implicit chain leaves it, into
// another branch or past the end of the list, and routes them to the node where
// the branches meet.
func (j *joiner) closeBranch(f *FanOut, entry *Node) {
	f.walk(entry, map[*Node]bool{}, func(n *Node) bool {
		if f.Join == nil && n != entry && j.canJoin(f, n) {
			return false // the branches meet here
		}
		implicit := n.Route.Implicit
		if implicit == nil || j.ending[n] {
			return true
		}
		if implicit.Node == nil || j.inner[f][implicit.Node] || j.isOuter(implicit.Node) {
			n.Route.Implicit = &Target{Node: j.meeting(f, n, entry)}
		}
		return true
	})
}

// isOuter reports whether a node is an entry or the fan-in node of an outer
// fan-out.
func (j *joiner) isOuter(n *Node) bool {
	return slices.ContainsFunc(j.outer, func(outer *FanOut) bool { return n == outer.Join || outer.hasEntry(n) })
}

// meeting returns the node after n, the last node of its branch: the fan-in node
// of the fan-out, else a marked node, else the node after the entries if each
// branch is one node. nil is the end.
func (j *joiner) meeting(f *FanOut, n, entry *Node) *Node {
	if f.Join != nil {
		return f.Join
	}
	if m := j.markedAfter(f, n); m != nil {
		return m
	}
	next := n.following
	if n != entry && j.inner[f][next] {
		j.diags.Warnf(diagcode.FanInNotReached, n.Spec.Pos, "name the fan-in node: fan_in: on the edge, or fan_in: true on the node",
			"the branch that begins at %q ends at %q, since the node listed next belongs to another branch", entry.Name, n.Name)
		return nil
	}
	if next = j.nodeAfterEntries(f, next); next == nil || j.isOuter(next) {
		return nil
	}
	return next
}

// nodeAfterEntries returns the first node from n on that is not an entry; nil at
// the end of the list.
func (j *joiner) nodeAfterEntries(f *FanOut, n *Node) *Node {
	if found, ok := j.after[n]; ok {
		return found
	}
	found := n
	for found != nil && j.inner[f][found] {
		found = found.following
	}
	for ; n != found; n = n.following {
		j.after[n] = found
	}
	return found
}

// markedAfter returns the next marked node after n, or else the first one, at
// which branches can join.
func (j *joiner) markedAfter(f *FanOut, n *Node) (first *Node) {
	for _, m := range j.marked {
		if m == n || !j.canJoin(f, m) {
			continue
		}
		if m.Index > n.Index {
			return m
		}
		if first == nil {
			first = m
		}
	}
	return first
}

// canJoin reports whether a node is marked as a fan-in node and not used by
// another fan-out.
func (j *joiner) canJoin(f *FanOut, n *Node) bool {
	return n.Spec.FanIn && !j.joins[n] && !f.hasEntry(n) && !j.isOuter(n)
}

// nearestCommon returns the node that every branch reaches with the smallest
// maximum distance; the first in the list if several are equal. Nodes marked
// fan_in take precedence.
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

// distances returns the nodes that are reachable from a node, each with its
// distance in edges, 0 for the node itself.
func distances(from *Node) map[*Node]int {
	dist := map[*Node]int{from: 0}
	queue := []*Node{from}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for _, t := range n.successors() {
			if t == nil {
				continue
			}
			if _, seen := dist[t]; !seen {
				dist[t] = dist[n] + 1
				queue = append(queue, t)
			}
		}
	}
	return dist
}

// successors returns the nodes that can run after a node, including its
// fallback and the fan-in node of its fan-out; nil is the end.
func (n *Node) successors() []*Node {
	next := n.Route.Targets()
	if m, ok := n.Body.(*Map); ok && m.FanIn != nil {
		next = []*Node{m.FanIn}
	}
	if n.Fallback != nil {
		next = append(next, n.Fallback)
	}
	if f := n.Route.FanOut; f != nil && f.Join != nil {
		next = append(next, f.Join)
	}
	return next
}

// mapJoins sets the fan-in node of a map without fan_in: the next node, if it is
// marked fan_in: true and is not the fan-in node of an outer fan-out.
func mapJoins(g *Graph) {
	taken := map[*Node]bool{}
	for _, r := range g.allRoutes() {
		if r.FanOut != nil {
			taken[r.FanOut.Join] = true
		}
	}
	for _, n := range g.Nodes {
		m, ok := n.Body.(*Map)
		if !ok || m.FanIn != nil {
			continue
		}
		if next := n.Route.only(); next != nil && next.Spec.FanIn && !taken[next] {
			m.FanIn = next
		}
	}
}

package graph

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Check warns of probable mistakes: unreachable nodes, nodes that may have no
// way out, and keys of the state that are read but never written. It covers
// subgraphs, except their keys, which any workflow that uses them can set.
func Check(g *Graph) diag.List {
	var diags diag.List
	neverWritten(g, &diags)
	checkRouting(g, &diags)
	diags.Sort()
	return slices.Compact(diags)
}

func checkRouting(g *Graph, diags *diag.List) {
	checkList(g, diags)
	eachNode(g.Nodes, func(n *Node) {
		switch b := n.Body.(type) {
		case *Loop:
			checkList(b.Body, diags)
		case *Subgraph:
			if b.Graph != nil {
				checkRouting(b.Graph, diags)
			}
		}
	})
}

// checkList checks one list of nodes.
func checkList(g *Graph, diags *diag.List) {
	unreachable(g, diags)
	for _, n := range g.Nodes {
		warnNoDefaultRoute(n, diags)
		if n.Fallback != nil && n.Fallback != n && n.Route.only() == n.Fallback {
			diags.Warnf(diagcode.FallbackProblem, n.Spec.Fallback.Pos, "add a goto to "+n.Name+" that skips it; or write on_error: continue if it is to run in both cases",
				"node %q also runs after %q succeeds: it is its fallback and its next node", n.Fallback.Name, n.Name)
		}
	}
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
			diags.Warnf(diagcode.Unreachable, n.Spec.Pos, "add an edge to it, or remove it", "the node %q is unreachable", n.Name)
		}
	}
}

// warnNoDefaultRoute warns of a node whose routes all have conditions. A switch, and a
// condition together with its opposite, cover every case.
func warnNoDefaultRoute(n *Node, diags *diag.List) {
	r := &n.Route
	if r.Default != nil || r.Implicit != nil {
		return
	}
	var guards []string
	add := func(c *Condition) bool {
		if c != nil {
			guards = append(guards, c.Value)
		}
		return c == nil
	}
	open := false
	for _, rule := range r.Goto {
		open = add(rule.If) || open
	}
	if len(r.Goto) == 0 {
		if r.FanOut != nil {
			for _, b := range r.FanOut.Branches {
				open = add(b.When) || open
			}
		}
		for _, arm := range r.Arms {
			open = add(arm.When) || open
		}
	}
	if open || len(guards) == 0 || exhaustive(guards) {
		return
	}
	diags.Warnf(diagcode.NoWayOut, n.Spec.Pos, "add an edge without when:, or a goto without if:, as the default",
		"the node %q has no way out if all its conditions are false (%s)", n.Name, strings.Join(guards, "; "))
}

// exhaustive reports whether one guard is the opposite of another as written.
func exhaustive(guards []string) bool {
	for _, a := range guards {
		for _, b := range guards {
			if slices.Contains(opposites(a), trimBraces(b)) {
				return true
			}
		}
	}
	return false
}

var (
	comparison = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([^=<>~!&|]+?)\s*(==|~=|!=|<=|>=|<|>)\s*([^=<>~!&|]+)$`)
	})
	connective = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(and|or|not|if|else|in|is)\b`) })
)

// trimBraces returns an expression without braces, outer brackets and extra spaces.
func trimBraces(text string) string {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "{{"); ok {
		if inner, ok = strings.CutSuffix(inner, "}}"); ok {
			text = strings.TrimSpace(inner)
		}
	}
	if strings.HasPrefix(text, "(") && strings.Index(text, ")") == len(text)-1 {
		text = strings.TrimSpace(text[1 : len(text)-1])
	}
	return strings.Join(strings.Fields(text), " ")
}

// opposites returns the usual spellings of the opposite of an expression.
func opposites(text string) []string {
	text = trimBraces(text)
	out := []string{"not " + text, "not (" + text + ")", "not(" + text + ")", "!" + text, "!(" + text + ")"}
	m := comparison().FindStringSubmatch(text)
	if m == nil || connective().MatchString(text) {
		return out
	}
	for _, operator := range map[string][]string{
		"==": {"~=", "!="}, "~=": {"=="}, "!=": {"=="}, "<": {">="}, ">=": {"<"}, ">": {"<="}, "<=": {">"},
	}[m[2]] {
		out = append(out, m[1]+" "+operator+" "+m[3])
	}
	return out
}

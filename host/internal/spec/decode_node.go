package spec

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/source"
)

// nodes reads a list of nodes or a mapping name -> node. A node without a name,
// already reported, is read to report its other mistakes.
func (d *decoder) nodes(v element) []*Node {
	var nodes []*Node
	items, entries := v.items(), v.entries()
	seen := make(map[string]*Node, len(items)+len(entries))
	add := func(item element, key *source.Node, named bool) {
		n := d.node(item, d.grammar.node, key)
		if named {
			d.checkName(n)
			d.unique(seen, n)
			nodes = append(nodes, n)
		}
	}
	for _, item := range items {
		if item.is(source.Map) {
			_, named := nameIn(item.node)
			add(item, nil, named)
		}
	}
	for _, e := range entries {
		if e.is(source.Map) || e.is(source.Null) {
			add(e.element, e.key, true)
		}
	}
	d.checkPaths(seen, nodes)
	return nodes
}

// pathMarks are the characters that follow a node's name in the paths of inner and
// repeated executions.
const pathMarks = "/[>!~#"

// checkPaths reports names that look like the path of something inside another node
// of the list, because a checkpoint could not distinguish them.
func (d *decoder) checkPaths(seen map[string]*Node, nodes []*Node) {
	for _, n := range nodes {
		for i, r := range n.Name {
			if seen[n.Name[:i]] != nil && strings.ContainsRune(pathMarks, r) {
				d.errorf(diagcode.NodeNameNotAllowed, n.NamePos, fmt.Sprintf("choose another name, without the %c", r),
					"the node name %q looks like a path inside the node %q", n.Name, n.Name[:i])
				break
			}
		}
	}
}

// checkName reports a name that is not valid for a node.
func (d *decoder) checkName(n *Node) {
	var problem string
	switch {
	case n.Name == Start || n.Name == End || canonicalName(n.Name) != n.Name:
		problem = "is reserved for the start and the end of a run"
	case strings.TrimSpace(n.Name) != n.Name || n.Name == "":
		problem = "is empty or has spaces around it"
	case strings.ContainsFunc(n.Name, unicode.IsControl):
		problem = "contains a control character"
	default:
		return
	}
	d.errorf(diagcode.NodeNameNotAllowed, n.NamePos, "choose another name", "the node name %q %s", n.Name, problem)
}

func (d *decoder) unique(seen map[string]*Node, n *Node) {
	if first := seen[n.Name]; first != nil {
		d.errorf(diagcode.DuplicateNode, n.NamePos, "rename one of them", "duplicate node name %q (first defined at %s)", n.Name, first.NamePos)
		return
	}
	seen[n.Name] = n
}

// steps reads a list of steps. The name of an unnamed step is its index.
func (d *decoder) steps(v element) []*Node {
	var steps []*Node
	seen := map[string]*Node{}
	for i, item := range v.items() {
		if !item.is(source.Map) {
			continue
		}
		n := d.node(item, d.grammar.step, nil)
		if n.Name == "" {
			n.Name = strconv.Itoa(i)
		}
		if n.Body == nil {
			d.errorf(diagcode.MissingKey, item.pos(), "add uses:, run:, steps: or subgraph:", "the step has no body")
		}
		d.unique(seen, n)
		steps = append(steps, n)
	}
	d.checkPaths(seen, steps)
	return steps
}

// node reads one node or step; key is its key in a mapping of nodes, else nil.
func (d *decoder) node(v element, s *section, key *source.Node) *Node {
	m := openMapping(v, s)
	name, at := "", m.pos()
	if key != nil {
		name, at = key.Text, key.Pos(v.path)
	} else if m.has("name") {
		at = m.get("name").pos()
	}
	outer := d.where
	d.where = scope{cmp.Or(m.string("name"), name), v.path}
	defer func() { d.where = outer }()
	n := &Node{
		Pos: m.pos(), Name: m.string("name"), NamePos: at, Description: m.string("description"), Metadata: m.object("metadata"),
		If: m.text("if"), Goto: d.rules(m.get("goto")), Retry: d.retry(m.get("retry")), Timeout: orZero(m.duration("timeout_seconds")),
		Fallback: targetOf(m.text("fallback")), OnError: OnError(m.string("on_error")),
		InterruptBefore: m.string("interrupt") == "before", InterruptAfter: m.string("interrupt") == "after",
		FanIn: m.isTrue("fan_in"), Parallel: d.parallel(m.get("parallel")),
	}
	if name != "" {
		if n.Name != "" && n.Name != name {
			d.conflict(m.key("name"), "remove "+m.nameKey(), "the node has two names: %q is its key, %q its %s", name, n.Name, m.nameKey())
		}
		n.Name = name
	}
	if n.OnError == OnErrorFallback && n.Fallback == nil {
		d.conflict(m.key("on_error"), "add fallback: with the node's name", "on_error: fallback needs fallback")
	}
	n.Body = d.body(m)
	d.effects(n, m)
	return n
}

// effects reads the settings of a node for effects that must not be repeated.
func (d *decoder) effects(n *Node, m mapping) {
	n.Once, n.OnUnknown = m.string("effects") == "once", OnUnknown(m.string("on_unknown"))
	if n.OnUnknown != "" {
		n.OnUnknownPos = m.key("on_unknown").pos()
	}
	v := m.get("verify")
	switch b := n.Body.(type) {
	case *ActionBody:
		if b.Inline && n.OnUnknown == "" {
			return // verify can be a parameter
		}
	case *LuaBody, *MapBody:
	default:
		for _, key := range []string{"effects", "on_unknown", "verify"} {
			if m.has(key) {
				d.conflict(m.key(key), "move it to the node that makes the call", "%s needs uses, run or a map", key)
			}
		}
		return
	}
	if (n.OnUnknown == OnUnknownVerify) != (v.node != nil) {
		d.conflict(m.element, "write both on_unknown: verify and verify: with uses and if", "on_unknown: verify and verify need each other")
		return
	}
	if !v.is(source.Map) {
		return
	}
	call := openMapping(v, d.grammar.verify)
	if condition := call.text("if"); condition != nil && call.has("uses") {
		n.Verify = &Verify{Call: d.action(call), If: *condition}
	}
}

// nameKey returns the spelling of the key with the node's name.
func (m mapping) nameKey() string {
	if m.node.Get("name") != nil {
		return "name"
	}
	return "id"
}

// rules reads goto: a target, or a list of rules.
func (d *decoder) rules(v element) []Rule {
	if v.is(source.String) {
		return []Rule{{Pos: v.pos(), To: target(v.text())}}
	}
	var rules []Rule
	for _, item := range v.items() {
		if !item.is(source.Map) {
			continue
		}
		m := openMapping(item, d.grammar.rule)
		if to := m.text("to"); to != nil {
			rules = append(rules, Rule{Pos: m.pos(), If: m.text("if"), To: target(*to)})
		}
	}
	return rules
}

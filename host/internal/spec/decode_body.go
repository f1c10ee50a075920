package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/source"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// body reads the body of a node; nil if there is none.
func (d *decoder) body(m mapping) Body {
	switch m.string("type") {
	case typeLoop:
		return d.loop(m)
	case typeMap:
		return d.mapBody(m)
	}
	found := d.onlyBody(m, "uses", "run", "steps", "subgraph")
	d.needs(m, found, "uses", "with")
	d.needs(m, found, "run", "language")
	d.needs(m, found, "subgraph", "input")
	if m.has("output") && (found == "" || found == "steps") {
		d.conflict(m.key("output"), "give the output to a step, or remove it", "output needs uses, run or subgraph")
	}
	switch found {
	case "uses":
		return d.action(m)
	case "run":
		if language := m.string("language"); language != "" && language != "lua" {
			return nil // the code is not Lua
		}
		return &LuaBody{Pos: m.get("run").pos(), Code: *m.text("run"), Output: d.output(m.get("output"))}
	case "steps":
		return &StepsBody{Pos: m.get("steps").pos(), Steps: d.steps(m.get("steps"))}
	case "subgraph":
		return d.subgraphBody(m)
	}
	return nil
}

// onlyBody returns the only key that is present and reports a second one. A key
// with a value of the wrong type, which was already reported, counts as absent.
func (d *decoder) onlyBody(m mapping, keys ...string) string {
	found := ""
	for _, k := range keys {
		v := m.get(k)
		if v.node == nil {
			continue
		}
		if found != "" {
			d.errorf(diagcode.TwoBodies, m.key(k).pos(), "split it into two nodes, or use steps:", "a node cannot have both %s and %s",
				d.spelled(m, found), d.spelled(m, k))
			continue
		}
		s := m.section.find(k).shape
		if s.text != nil && v.is(source.String) || s.list != nil && v.is(source.List) || s.mapping != nil && v.is(source.Map) {
			found = k
		}
	}
	return found
}

// spelled returns the spelling that the file uses for a key.
func (d *decoder) spelled(m mapping, name string) string {
	for _, member := range m.node.Members {
		if k := m.section.find(member.Key.Text); k != nil && k.name == name {
			return member.Key.Text
		}
	}
	return name
}

// needs reports a key without the body that it belongs to.
func (d *decoder) needs(m mapping, found, body, key string) {
	if m.has(key) && found != body && !m.has(body) {
		spelled := d.spelled(m, key)
		d.conflict(m.key(key), "add "+body+", or remove "+spelled, "%s needs %s", spelled, body)
	}
}

// action reads a call. With action: and without with:, keys that are not node keys
// are the call's parameters.
func (d *decoder) action(m mapping) *ActionBody {
	a := &ActionBody{Pos: m.pos(), Output: d.output(m.get("output"))}
	if uses := m.text("uses"); uses != nil { // optional in a map
		a.Pos, a.Uses = uses.Pos, *uses
	}
	switch with := m.get("with"); {
	case with.is(source.Map):
		a.With = newTree(with)
	case m.section.takesParams(m.node):
		a.Inline = true
		a.With = someMembers(m.element, func(name string) bool {
			k := m.section.findIn(m.node, name)
			return (k == nil || k.use == asParam) && !free(name)
		})
	}
	a.Own = someMembers(m.element, func(name string) bool {
		k := m.section.find(name)
		return k != nil && k.use == asEither && m.has(name)
	})
	if a.Inline && a.Own != nil {
		a.OwnDiags = d.checkOwn(m, a.Own)
		a.Own = inSeconds(m, a.Own)
	}
	return a
}

// inSeconds returns the tree with its durations in seconds, as actions receive them.
func inSeconds(m mapping, t *Tree) *Tree {
	root := *t.root.node
	root.Members = slices.Clone(root.Members)
	for i, member := range root.Members {
		if d := m.duration(member.Key.Text); d != nil && member.Value.Kind == source.String {
			number := *member.Value
			number.Kind, number.Scalar = source.Float, d.Seconds()
			root.Members[i].Value = &number
		}
	}
	return newTree(element{&root, t.root.path})
}

// IsNodeKey reports whether a key next to action: belongs to the node and is not a
// parameter.
func IsNodeKey(name string) bool {
	k := theGrammar().node.find(name)
	return k != nil && k.use == asKey
}

// someMembers returns the Tree of the members of v whose names takes accepts, or nil if
// there are none.
func someMembers(v element, takes func(name string) bool) *Tree {
	some := *v.node
	some.Members = slices.DeleteFunc(slices.Clone(v.node.Members), func(member source.Member) bool { return !takes(member.Key.Text) })
	if len(some.Members) == 0 {
		return nil
	}
	return newTree(element{&some, v.path})
}

// checkOwn checks the keys of own as keys of the node, which the general check
// leaves to [ActionBody.Claim].
func (d *decoder) checkOwn(m mapping, own *Tree) map[string]diag.List {
	var found map[string]diag.List
	for _, e := range own.root.entries() {
		var diags diag.List
		c := checker{diags: &diags, grammar: d.grammar, where: d.where}
		if c.key(e.node, e.path, e.key.Text, m.section.find(e.key.Text)); diags != nil {
			if found == nil {
				found = map[string]diag.List{}
			}
			found[e.key.Text] = diags
		}
	}
	return found
}

// Claim returns the call with the named keys of Own, which are next to action:, added
// to its parameters. It adds the mistakes in the other keys to diags.
func (b *ActionBody) Claim(names []string, diags *diag.List) *ActionBody {
	for _, e := range b.Own.root.entries() {
		if !slices.Contains(names, e.key.Text) {
			*diags = append(*diags, b.OwnDiags[e.key.Text]...)
		}
	}
	params := someMembers(b.Own.root, func(name string) bool { return slices.Contains(names, name) })
	if params == nil {
		return b
	}
	if b.With != nil {
		root := *b.With.root.node
		root.Members = slices.Concat(root.Members, params.root.node.Members)
		params = newTree(element{&root, b.With.root.path})
	}
	claimed := *b
	claimed.With = params
	return &claimed
}

func (d *decoder) loop(m mapping) *LoopBody {
	l := &LoopBody{
		Pos: m.get("type").pos(), MaxIterations: maxIterations, StopAtMax: m.string("on_max") == "stop",
		Nodes: d.nodes(m.get("body")), Output: d.output(m.get("output")),
	}
	if condition := m.text("condition"); condition != nil {
		l.Condition = *condition
	}
	if n := m.int("max_iterations"); n != nil {
		l.MaxIterations = *n
	}
	return l
}

func (d *decoder) mapBody(m mapping) *MapBody {
	b := &MapBody{
		Pos: m.get("type").pos(), ItemVar: "item", IndexVar: "index", MaxConcurrency: orZero(m.int("max_concurrency")),
		FailFast: m.isTrue("fail_fast"), Output: d.output(m.get("output")),
	}
	if items := m.get("items"); items.node != nil {
		b.Items = newTree(items)
		d.checkItems(items)
	}
	if m.has("item_var") {
		b.ItemVar = m.string("item_var")
	}
	if m.has("index_var") {
		b.IndexVar = m.string("index_var")
	}
	if m.get("fan_in").is(source.String) {
		b.FanIn = targetOf(m.text("fan_in"))
	}
	d.checkItemNames(m, b)
	found := d.onlyBody(m, "action", "steps", "subgraph")
	d.needs(m, found, "subgraph", "input")
	switch found {
	case "action":
		b.Do = d.action(openMapping(m.get("action"), d.grammar.call))
	case "steps":
		b.Do = &StepsBody{Pos: m.get("steps").pos(), Steps: d.steps(m.get("steps"))}
	case "subgraph":
		inner := d.subgraphBody(m)
		inner.Output = nil
		b.Do = inner
	default:
		if !m.has("action") && !m.has("steps") && !m.has("subgraph") {
			d.errorf(diagcode.MissingKey, m.pos(), "add action: {uses: ...}, steps: or subgraph:", "a dynamic_parallel node needs action, steps or subgraph")
		}
	}
	return b
}

// checkItems reports items that cannot be a list: text without a template.
func (d *decoder) checkItems(items element) {
	if !items.scalar() || strings.Contains(items.node.Text, "{{") || strings.Contains(items.node.Text, "{%") {
		return
	}
	hint := "write a list, or a template"
	if items.is(source.String) && items.node.Text != "" {
		hint = fmt.Sprintf("write it as a template: \"{{ %s }}\"", items.node.Text)
	}
	d.errorf(diagcode.WrongType, items.pos(), hint, "items: expected a list or a template, got %s", items.node.Kind)
}

// templateNames are the predefined names of templates and Lua.
var templateNames = []string{"state", "variables", "settings", "secrets", "env", "nodes", "run", "checkpoint", "result", "parallel_results", "tea"}

// checkItemNames reports names for item and index that hide each other or a
// predefined name.
func (d *decoder) checkItemNames(m mapping, b *MapBody) {
	for _, key := range []string{"item_var", "index_var"} {
		if name := m.string(key); slices.Contains(templateNames, name) {
			d.errorf(diagcode.ValueNotAllowed, m.get(key).pos(), "choose another name", "%s: %q has another meaning in templates", key, name)
		}
	}
	if b.ItemVar != b.IndexVar {
		return
	}
	key := "item_var"
	if m.has("index_var") {
		key = "index_var"
	}
	d.errorf(diagcode.ValueNotAllowed, m.get(key).pos(), "choose another name", "%s: item and index have the same name %q", key, b.ItemVar)
}

func (d *decoder) subgraphBody(m mapping) *SubgraphBody {
	path := *m.text("subgraph")
	b := &SubgraphBody{Pos: m.get("subgraph").pos(), Path: path, Output: d.output(m.get("output"))}
	if input := m.get("input"); input.is(source.Map) {
		b.Input = newTree(input)
	}
	if hasTag(path.Value) {
		d.errorf(diagcode.SubgraphUnreadable, path.Pos, "write the path without a template; use the action workflow.run to choose a file at run time", "subgraph: the path cannot be a template")
		return b
	}
	b.Workflow = d.subgraph(path)
	return b
}

func hasTag(text string) bool { return strings.Contains(text, "{{") || strings.Contains(text, "{%") }

// output reads the destination of a result: one key, or an expression per key.
func (d *decoder) output(v element) *Output {
	switch {
	case v.is(source.String):
		if hasTag(v.node.Text) {
			d.errorf(diagcode.ValueNotAllowed, v.pos(), fmt.Sprintf("write output: {KEY: %q}, or only the name of a key", v.node.Text), "output: the name of a key cannot be a template")
		}
		return &Output{Pos: v.pos(), Key: v.node.Text}
	case v.is(source.Map):
		o := &Output{Pos: v.pos()}
		for _, e := range v.entries() {
			o.Fields = append(o.Fields, OutputField{Key: e.key.Text, Value: newTree(e.element)})
		}
		return o
	}
	return nil
}

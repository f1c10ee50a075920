package jsonschema

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// compiler compiles a document to nodes: one for each reachable subschema, so that recursive
// schemas become cycles of nodes. It panics with an *Error at the first mistake.
type compiler struct {
	*document
	nodes   map[string]*node // by pointer
	pending []func()         // references, bound when all nodes exist
	tracks  bool
}

func (c *compiler) compile() *Schema {
	root := c.node("", c.root, c.resources[""])
	for _, pointer := range sortedKeys(c.dynamics) {
		n := c.nodeAt(pointer)
		n.resource.dynamic[c.dynamics[pointer]] = n
	}
	for len(c.pending) > 0 {
		bind := c.pending[0]
		c.pending = c.pending[1:]
		bind()
	}
	rejectCycles(c.nodes)
	c.dropInvalidDefaults()
	return &Schema{root: root, tracks: c.tracks}
}

// dropInvalidDefaults removes the defaults that do not match their own schema, such as null for an
// array, because filling them in would make every value invalid. MCP servers have such
// defaults. The checks of all defaults share one budget of steps; defaults that exceed it are
// removed, too.
func (c *compiler) dropInvalidDefaults() {
	r := &run{tracks: c.tracks, steps: baseSteps}
	for _, pointer := range sortedKeys(c.nodes) {
		rules := c.nodes[pointer].object
		if rules == nil {
			continue
		}
		rules.fallbacks = slices.DeleteFunc(rules.fallbacks, func(name string) bool {
			n := rules.properties[name]
			r.problems = nil
			r.validate(n, n.fallback, nil, nil)
			return len(r.problems) > 0 || r.stopped != ""
		})
	}
}

// nodeAt compiles the schema at a pointer; nil if there is none.
func (c *compiler) nodeAt(pointer string) *node {
	if raw, res, ok := c.at(pointer); ok {
		return c.node(pointer, raw, res)
	}
	return nil
}

// node compiles raw, which is at pointer in the resource res.
func (c *compiler) node(pointer string, raw any, res *resource) *node {
	if n, ok := c.nodes[pointer]; ok {
		return n
	}
	if own := c.resources[pointer]; own != nil {
		res = own
	}
	n := &node{pointer: pointer, resource: res}
	c.nodes[pointer] = n
	switch raw := raw.(type) {
	case bool:
		n.never = !raw
	case map[string]any:
		k := &keywords{c: c, raw: raw, pointer: pointer, res: res}
		c.bindRefs(k, n)
		if _, isRef := raw["$ref"]; !isRef || !c.draft7 { // draft 7 ignores the siblings of a $ref
			k.fill(n)
		}
	default:
		panic(&Error{Path: pathOf(pointer), Message: fmt.Sprintf("expected an object or a boolean, got %s", describe(raw))})
	}
	return n
}

// bindRefs resolves $ref and $dynamicRef after all nodes have been created.
func (c *compiler) bindRefs(k *keywords, n *node) {
	for _, keyword := range []string{"$ref", "$dynamicRef"} {
		given, ok := k.raw[keyword]
		if !ok || keyword == "$dynamicRef" && c.draft7 {
			continue
		}
		ref, ok := given.(string)
		if !ok {
			k.fail(keyword, "expected a string, got %s", describe(given))
		}
		c.pending = append(c.pending, func() {
			pointer, fragment, err := c.find(n.resource, ref)
			if err != nil {
				k.fail(keyword, "%v", err)
			}
			target := c.nodeAt(pointer)
			if target == nil {
				k.fail(keyword, "%q: nothing at #%s", ref, pointer)
			}
			if keyword == "$ref" {
				n.ref = target
				return
			}
			n.dynamic = &dynamicRef{target: target}
			if name := c.dynamics[pointer]; name != "" && name == fragment {
				n.dynamic.name = name
			}
		})
	}
}

// rejectCycles rejects schemas that lead back to themselves without descending into the value,
// for example {"$ref": "#"}, because a check would never end.
func rejectCycles(nodes map[string]*node) {
	const visiting, done = 1, 2
	states := make(map[*node]int, len(nodes))
	var visit func(n *node)
	visit = func(n *node) {
		switch states[n] {
		case done:
			return
		case visiting:
			panic(&Error{Path: pathOf(n.pointer), Message: "a reference leads back here without descending into the value"})
		}
		states[n] = visiting
		for _, next := range n.inPlace() {
			visit(next)
		}
		states[n] = done
	}
	for _, pointer := range sortedKeys(nodes) {
		visit(nodes[pointer])
	}
}

// inPlace returns the subschemas that check the same value as n.
func (n *node) inPlace() []*node {
	var next []*node
	if n.ref != nil {
		next = append(next, n.ref)
	}
	if n.dynamic != nil {
		next = append(next, n.dynamic.target)
	}
	if n.object != nil {
		for _, name := range sortedKeys(n.object.dependentSchemas) {
			next = append(next, n.object.dependentSchemas[name])
		}
	}
	if l := n.logic; l != nil {
		next = append(append(append(next, l.allOf...), l.anyOf...), l.oneOf...)
		for _, sub := range []*node{l.not, l.cond, l.then, l.otherwise} {
			if sub != nil {
				next = append(next, sub)
			}
		}
	}
	return next
}

// keywords reads the keywords of one subschema.
type keywords struct {
	c       *compiler
	raw     map[string]any
	pointer string
	res     *resource
}

func (k *keywords) fail(keyword, format string, args ...any) {
	panic(&Error{Path: diag.Key(pathOf(k.pointer), keyword), Message: fmt.Sprintf(format, args...)})
}

// sub compiles a subschema at path segments below this one.
func (k *keywords) sub(raw any, segments ...string) *node {
	pointer := k.pointer
	for _, s := range segments {
		pointer += "/" + escape(s)
	}
	return k.c.node(pointer, raw, k.res)
}

func (k *keywords) schema(keyword string) *node {
	raw, ok := k.raw[keyword]
	if !ok {
		return nil
	}
	return k.sub(raw, keyword)
}

func (k *keywords) schemas(keyword string) []*node {
	raw, ok := k.raw[keyword]
	if !ok {
		return nil
	}
	list, ok := raw.([]any)
	if !ok || len(list) == 0 {
		k.fail(keyword, "expected a list of schemas that is not empty, got %s", describe(raw))
	}
	nodes := make([]*node, len(list))
	for i, e := range list {
		nodes[i] = k.sub(e, keyword, strconv.Itoa(i))
	}
	return nodes
}

func (k *keywords) schemaMap(keyword string) map[string]*node {
	m := k.mapping(keyword)
	if m == nil {
		return nil
	}
	nodes := make(map[string]*node, len(m))
	for _, name := range sortedKeys(m) {
		nodes[name] = k.sub(m[name], keyword, name)
	}
	return nodes
}

func (k *keywords) mapping(keyword string) map[string]any {
	raw, ok := k.raw[keyword]
	if !ok {
		return nil
	}
	m, ok := raw.(map[string]any)
	if !ok {
		k.fail(keyword, "expected an object, got %s", describe(raw))
	}
	return m
}

// names reads a list of strings.
func (k *keywords) names(keyword string, raw any) []string {
	list, ok := raw.([]any)
	if !ok {
		k.fail(keyword, "expected a list of strings, got %s", describe(raw))
	}
	names := make([]string, len(list))
	for i, e := range list {
		if names[i], ok = e.(string); !ok {
			k.fail(keyword, "expected only strings, got %s", describe(e))
		}
	}
	return names
}

// text reads a string; "" if absent.
func (k *keywords) text(keyword string) string {
	raw, ok := k.raw[keyword]
	if !ok {
		return ""
	}
	s, ok := raw.(string)
	if !ok {
		k.fail(keyword, "expected a string, got %s", describe(raw))
	}
	return s
}

// count reads a count; it returns absent if the keyword is not given.
func (k *keywords) count(keyword string, absent int) int {
	raw, ok := k.raw[keyword]
	if !ok {
		return absent
	}
	n, ok := value.Int(raw)
	if !ok || n < 0 {
		k.fail(keyword, "expected an integer that is not negative, got %s", describe(raw))
	}
	return n
}

// has reports whether at least one of the keywords is given.
func (k *keywords) has(names ...string) bool {
	for _, name := range names {
		if _, ok := k.raw[name]; ok {
			return true
		}
	}
	return false
}

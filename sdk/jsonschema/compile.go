package jsonschema

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/the-edge-agent/tea/sdk/diag"
	"github.com/the-edge-agent/tea/sdk/value"
)

// compiler compiles a document to nodes: one for each subschema that is
// reached, so that recursive schemas become cycles of nodes.
type compiler struct {
	*document
	nodes   map[string]*node // by pointer
	pending []func() error   // references, bound when all nodes exist
	tracks  bool
}

func newCompiler(root any) (*compiler, error) {
	d, err := newDocument(root)
	if err != nil {
		return nil, err
	}
	return &compiler{document: d, nodes: map[string]*node{}}, nil
}

func (c *compiler) compile() (*Schema, error) {
	root, err := c.node("", c.root, c.resources[""])
	if err != nil {
		return nil, err
	}
	for _, pointer := range sortedKeys(c.dynamics) {
		n, err := c.nodeAt(pointer)
		if err != nil {
			return nil, err
		}
		n.resource.dynamic[c.dynamics[pointer]] = n
	}
	for len(c.pending) > 0 {
		bind := c.pending[0]
		c.pending = c.pending[1:]
		if err := bind(); err != nil {
			return nil, err
		}
	}
	if err := refuseLoops(c.nodes); err != nil {
		return nil, err
	}
	return &Schema{root: root, tracks: c.tracks}, nil
}

// nodeAt compiles the schema at a pointer.
func (c *compiler) nodeAt(pointer string) (*node, error) {
	raw, res, ok := c.at(pointer)
	if !ok {
		return nil, fmt.Errorf("nothing at #%s", pointer)
	}
	return c.node(pointer, raw, res)
}

// node compiles raw, which is at pointer in the resource res.
func (c *compiler) node(pointer string, raw any, res *resource) (*node, error) {
	if n, ok := c.nodes[pointer]; ok {
		return n, nil
	}
	if own := c.resources[pointer]; own != nil {
		res = own
	}
	n := &node{pointer: pointer, resource: res}
	c.nodes[pointer] = n
	switch raw := raw.(type) {
	case bool:
		n.never = !raw
		return n, nil
	case map[string]any:
		k := &keywords{c: c, raw: raw, pointer: pointer, res: res}
		if err := c.bindRefs(k, n); err != nil {
			return nil, err
		}
		if _, isRef := raw["$ref"]; isRef && c.draft7 {
			return n, nil // draft 7 ignores the siblings of a $ref
		}
		k.fill(n)
		return n, k.err
	}
	return nil, &Error{Path: pathOf(pointer), Message: fmt.Sprintf("expected an object or a boolean, got %s", describe(raw))}
}

// bindRefs looks up $ref and $dynamicRef after all nodes have been made.
func (c *compiler) bindRefs(k *keywords, n *node) error {
	for _, keyword := range []string{"$ref", "$dynamicRef"} {
		given, ok := k.raw[keyword]
		if !ok || keyword == "$dynamicRef" && c.draft7 {
			continue
		}
		ref, ok := given.(string)
		if !ok {
			return k.failure(keyword, "expected a string, got %s", describe(given))
		}
		c.pending = append(c.pending, func() error {
			pointer, fragment, err := c.find(n.resource, ref)
			if err != nil {
				return k.failure(keyword, "%v", err)
			}
			target, err := c.nodeAt(pointer)
			if err != nil {
				if ours := (*Error)(nil); errors.As(err, &ours) {
					return err
				}
				return k.failure(keyword, "%q: %v", ref, err)
			}
			if keyword == "$ref" {
				n.ref = target
				return nil
			}
			n.dynamic = &dynamicRef{target: target}
			if name := c.dynamics[pointer]; name != "" && name == fragment {
				n.dynamic.name = name
			}
			return nil
		})
	}
	return nil
}

// refuseLoops finds schemas that lead back to themselves without descending
// into the value, for example {"$ref": "#"}: they could never be checked.
func refuseLoops(nodes map[string]*node) error {
	const visiting, done = 1, 2
	states := make(map[*node]int, len(nodes))
	var visit func(n *node) error
	visit = func(n *node) error {
		switch states[n] {
		case done:
			return nil
		case visiting:
			return &Error{Path: pathOf(n.pointer), Message: "a reference leads back here without descending into the value"}
		}
		states[n] = visiting
		for _, next := range n.inPlace() {
			if err := visit(next); err != nil {
				return err
			}
		}
		states[n] = done
		return nil
	}
	for _, pointer := range sortedKeys(nodes) {
		if err := visit(nodes[pointer]); err != nil {
			return err
		}
	}
	return nil
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

// keywords reads the keywords of one subschema. The first mistake is kept in
// err; later reads have no effect.
type keywords struct {
	c       *compiler
	raw     map[string]any
	pointer string
	res     *resource
	err     error
}

func (k *keywords) failure(keyword, format string, args ...any) *Error {
	return &Error{Path: diag.Key(pathOf(k.pointer), keyword), Message: fmt.Sprintf(format, args...)}
}

func (k *keywords) fail(keyword, format string, args ...any) {
	if k.err == nil {
		k.err = k.failure(keyword, format, args...)
	}
}

// sub compiles a subschema at path segments below this one.
func (k *keywords) sub(raw any, segments ...string) *node {
	pointer := k.pointer
	for _, s := range segments {
		pointer += "/" + escape(s)
	}
	n, err := k.c.node(pointer, raw, k.res)
	if err != nil && k.err == nil {
		k.err = err
	}
	return n
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
		return nil
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
		return nil
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

// count reads a number of things, absent if it is not given.
func (k *keywords) count(keyword string, absent int) int {
	raw, ok := k.raw[keyword]
	if !ok {
		return absent
	}
	n, ok := value.Int(raw)
	if !ok || n < 0 {
		k.fail(keyword, "expected an integer that is not negative, got %s", describe(raw))
		return absent
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

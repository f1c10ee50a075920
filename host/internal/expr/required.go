package expr

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/the-edge-agent/tea/sdk/diag"
)

// RequiredFinder is an optional interface of a [Scope]. The look-up of a
// required member that does not exist fails, unless the filter default, the
// tests defined or undefined, or get with a default follows.
type RequiredFinder interface {
	// Required reports whether a root, or a value inside it, must have the
	// member; depth is 1 for the root itself.
	Required(root, member string, depth int) bool
}

// required fails if v, the result of a look-up of key in object, is undefined
// and required. of is the expression of the object.
func (r *run) required(of node, object, key, v any, pos int) (any, error) {
	if v != undefined || r.optional {
		return v, nil
	}
	root, depth := r.rootOf(of)
	return v, r.template.required(r.scope, root, depth+1, object, key, pos)
}

// rootOf returns the root of a chain of look-ups, and their number; "" if the
// chain begins at another expression.
func (r *run) rootOf(n node) (root string, depth int) {
	switch n := n.(type) {
	case *path:
		if _, bound := r.vars.get(n.root); !bound {
			return n.root, len(n.steps)
		}
	case *attribute:
		root, depth = r.rootOf(n.object)
	case *subscript:
		root, depth = r.rootOf(n.object)
	}
	return root, depth + 1
}

func (t *Template) required(s Scope, root string, depth int, object, key any, pos int) error {
	finder, ok := s.(RequiredFinder)
	if !ok || root == "" {
		return nil
	}
	member, err := textOf(key)
	if err != nil || !finder.Required(root, member, depth) {
		return nil
	}
	hint := ""
	if members, ok := object.(map[string]any); ok {
		hint = diag.Suggest(member, slices.Sorted(maps.Keys(members)))
	}
	of := root
	if depth > 1 {
		of = "a value in " + root
	}
	return t.failure(pos, hint, fmt.Errorf("%s has no member %q", of, member))
}

// required fails for the first step of a path that is undefined.
func (n *path) required(t *Template, s Scope) error {
	if _, ok := s.(RequiredFinder); !ok || len(n.steps) == 0 {
		return nil
	}
	object, _ := s.Lookup(n.root)
	for i, step := range n.steps {
		member := walk(object, n.steps[i:i+1])
		if member == undefined {
			key := step.key
			if !step.isKey {
				key = strconv.Itoa(step.index)
			}
			return t.required(s, n.root, i+1, object, key, n.pos)
		}
		object = member
	}
	return nil
}

// input evaluates the input of a filter or a test. If it is a look-up and
// optional, it need not find anything.
func (r *run) input(n node, optional bool) (any, error) {
	switch n.(type) {
	case *path, *attribute, *subscript, *methodCall, *filtered:
		before := r.optional
		r.optional = optional
		defer func() { r.optional = before }()
	}
	return n.eval(r)
}

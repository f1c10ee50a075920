package expr

import (
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// RequiredFinder is an optional interface of a [Scope]. Looking up a required
// member that does not exist fails, unless the filter default, the tests defined
// or undefined, or get with a default follows.
type RequiredFinder interface {
	// Required reports whether a root, or a value inside it, must have the
	// member; depth is 1 for the root itself.
	Required(root, member string, depth int) bool
}

// required fails if v, the result of a look-up of key in object, is undefined
// and required. of is the expression of the object.
func (r *run) required(of node, object, key, v any, pos int) any {
	if v != undefined || r.optional {
		return v
	}
	root, depth := r.rootOf(of)
	if root == "" {
		root, depth = r.origin(object)
	}
	r.template.required(r.scope, root, depth+1, object, key, pos)
	return v
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

// container records the root of an object that a path finds, so that a look-up
// under another name, as in {% set s = secrets %}{{ s[key] }}, is recognised. It
// returns the same object for each look-up of one root.
func (r *run) container(n *path, v any) any {
	finder, ok := r.scope.(RequiredFinder)
	if _, object := v.(map[string]any); !ok || !object || !finder.Required(n.root, "", len(n.steps)+1) {
		return v
	}
	whole, seen := r.roots[n.root]
	if !seen {
		if whole = v; len(n.steps) > 0 {
			whole, _ = r.scope.Lookup(n.root)
		}
		if r.roots == nil {
			r.roots = map[string]any{}
		}
		r.roots[n.root] = whole
	}
	if len(n.steps) > 0 {
		return v
	}
	return whole
}

// origin returns the root that contains an object, and the object's depth in it.
func (r *run) origin(object any) (root string, depth int) {
	of, ok := object.(map[string]any)
	if !ok {
		return "", 0
	}
	finder, _ := r.scope.(RequiredFinder)
	var search func(root string, in map[string]any, depth int) int
	search = func(root string, in map[string]any, depth int) int {
		if reflect.ValueOf(in).Pointer() == reflect.ValueOf(of).Pointer() {
			return depth
		}
		for _, v := range in {
			if inner, ok := v.(map[string]any); ok && finder.Required(root, "", depth+2) {
				if found := search(root, inner, depth+1); found >= 0 {
					return found
				}
			}
		}
		return -1
	}
	for root, whole := range r.roots {
		if in, ok := whole.(map[string]any); ok {
			if depth := search(root, in, 0); depth >= 0 {
				return root, depth
			}
		}
	}
	return "", 0
}

func (t *Template) required(s Scope, root string, depth int, object, key any, pos int) {
	finder, ok := s.(RequiredFinder)
	if !ok || root == "" || !isKey(key) {
		return
	}
	member := textOf(key)
	if !finder.Required(root, member, depth) {
		return
	}
	of, hint := root, ""
	if members, ok := object.(map[string]any); ok {
		hint = diag.Suggest(member, slices.Sorted(maps.Keys(members)))
	}
	if depth > 1 {
		of = "a value in " + root
	}
	panic(t.failure(pos, failf("%s has no member %q", of, member).hinted(hint)))
}

// find looks up the path, and fails if its first undefined step is required.
func (n *path) find(t *Template, s Scope) any {
	v := n.lookup(s, t.bare)
	if _, ok := s.(RequiredFinder); v == undefined && ok && len(n.steps) > 0 {
		root, _ := s.Lookup(n.root)
		object, depth, key := n.missing(root)
		t.required(s, n.root, depth, object, key, n.pos)
	}
	return v
}

// missing returns the first step of a path that is undefined: the object that
// lacks the key, and the key's depth below the root.
func (n *path) missing(object any) (of any, depth int, key string) {
	for i, step := range n.steps {
		member := walk(object, n.steps[i:i+1])
		if member == undefined {
			if key = step.key; !step.isKey {
				key = strconv.Itoa(step.index)
			}
			return object, i + 1, key
		}
		object = member
	}
	return object, 0, ""
}

// input evaluates the input of a filter or a test. If it is a look-up and
// optional, it need not find anything.
func (r *run) input(n node, optional bool) any {
	switch n.(type) {
	case *path, *attribute, *subscript, *methodCall, *filtered:
		before := r.optional
		r.optional = optional
		defer func() { r.optional = before }()
	}
	return n.eval(r)
}

package expr

import (
	"maps"

	"github.com/the-edge-agent/tea/host/internal/python"
	"github.com/the-edge-agent/tea/sdk/value"
)

func (n *literal) eval(*run) any { return n.value }

func (n *path) eval(r *run) any {
	if bound, ok := r.vars.get(n.root); ok {
		v := walk(bound, n.steps)
		if v == undefined && len(r.roots) > 0 {
			object, _, key := n.missing(bound)
			return r.required(n, object, key, v, n.pos)
		}
		return v
	}
	if r.optional {
		return r.container(n, n.lookup(r.scope, r.template.bare))
	}
	return r.container(n, n.find(r.template, r.scope))
}

func (n *attribute) eval(r *run) any {
	object := n.object.eval(r)
	return r.required(n.object, object, n.name, field(object, n.name), n.pos)
}

func (n *subscript) eval(r *run) any {
	object, key := n.object.eval(r), n.key.eval(r)
	return r.required(n.object, object, key, at(object, key), n.pos)
}

func (n *listLiteral) eval(r *run) any {
	list := r.list(n.elements)
	r.at(n.pos)
	measureParts(list)
	return list
}

// measureParts checks a list with other containers: by repeating one value on
// each level, a short text can create a huge value.
func measureParts(list []any) {
	for _, e := range list {
		switch e.(type) {
		case []any, map[string]any, *pair, *namespace:
			measure(list)
			return
		}
	}
}

func (r *run) list(nodes []node) []any {
	out := make([]any, len(nodes))
	for i, e := range nodes {
		out[i] = e.eval(r)
	}
	return out
}

func (n *dictLiteral) eval(r *run) any {
	out := make(map[string]any, len(n.keys))
	for i := range n.keys {
		key := n.keys[i].eval(r)
		r.pos = n.pos
		name := keyText(key)
		out[name] = n.values[i].eval(r)
	}
	r.pos = n.pos
	measure(out)
	return out
}

// isKey reports whether a value can be the key of an object.
func isKey(v any) bool {
	switch v.(type) {
	case string, int64, float64, bool:
		return true
	}
	return false
}

// keyText returns the key of an object: a string, or a scalar as its text.
func keyText(key any) string {
	if !isKey(key) {
		panic(failf("%s cannot be the key of an object", typeName(key)))
	}
	return textOf(key)
}

func (n *negation) eval(r *run) any { return !truthy(n.term.eval(r)) }

func (n *logical) eval(r *run) any {
	left := n.left.eval(r)
	if truthy(left) == n.or {
		return left
	}
	return n.right.eval(r)
}

func (n *conditional) eval(r *run) any {
	switch {
	case truthy(n.condition.eval(r)):
		return n.then.eval(r)
	case n.otherwise == nil:
		return undefined
	}
	return n.otherwise.eval(r)
}

func (n *unary) eval(r *run) any {
	v := n.term.eval(r)
	r.pos = n.pos
	if !python.IsNumber(v) {
		panic(failf("%s has no sign", typeName(v)))
	}
	if n.op == '-' {
		v = python.Negate(v)
	}
	return v
}

func (n *binary) eval(r *run) any {
	left, right := n.left.eval(r), n.right.eval(r)
	r.at(n.pos)
	return operate(n.op, left, right)
}

func (n *comparison) eval(r *run) any {
	left := n.first.eval(r)
	for _, c := range n.rest {
		right := c.term.eval(r)
		r.at(c.pos)
		if !compare(c.op, left, right) {
			return false
		}
		left = right
	}
	return true
}

func (n *slicing) eval(r *run) any {
	object := n.object.eval(r)
	var bounds [3]*int
	for i, part := range []node{n.start, n.stop, n.step} {
		if part == nil {
			continue
		}
		v := part.eval(r)
		if isNull(v) {
			continue
		}
		r.pos = n.pos
		whole, ok := v.(int64)
		if !ok {
			panic(failf("a slice needs integers, not %s", typeName(v)))
		}
		bound := clamp(whole)
		bounds[i] = &bound
	}
	r.pos = n.pos
	return slice(object, bounds[0], bounds[1], bounds[2])
}

func (n *filtered) eval(r *run) any {
	return n.apply(r, r.input(n.input, n.name == "default" || n.name == "d" || n.name == "attr" && r.optional))
}

func (n *filtered) apply(r *run, input any) any {
	args := r.args(&n.args, n.pos)
	v := r.call(n.filter, "filter "+n.name, input, args)
	if n.name == "attr" && len(args.positional) > 0 {
		return r.required(n.input, input, args.positional[0], v, n.pos)
	}
	return v
}

func (n *tested) eval(r *run) any {
	input := r.input(n.input, n.name == "defined" || n.name == "undefined")
	args := r.args(&n.args, n.pos)
	return truthy(r.call(n.test, "test "+n.name, input, args)) != n.negate
}

// callable is a value inside a template that can be called by its name.
type callable interface {
	call(r *run, args values) any
}

func (n *call) eval(r *run) any {
	args := r.args(&n.args, n.pos)
	if v, ok := r.vars.get(n.name); ok {
		if callee, ok := v.(callable); ok {
			return callee.call(r, args)
		}
	}
	f, ok := functions()[n.name]
	if !ok {
		panic(failf("%q is not a macro here", n.name))
	}
	return r.call(f, n.name+"()", nil, args)
}

func (n *methodCall) eval(r *run) any {
	object := n.object.eval(r)
	args := r.args(&n.args, n.pos)
	v := r.method(object, n.name, args)
	if n.name == "get" && len(args.positional) == 1 && len(args.named) == 0 {
		return r.required(n.object, object, args.positional[0], v, n.pos)
	}
	return v
}

// values are the evaluated arguments of a call.
type values struct {
	positional []any
	named      map[string]any
}

// args evaluates the arguments of a call at pos, and sets the run's position to it.
func (r *run) args(a *arguments, pos int) values {
	var out values
	if len(a.positional) > 0 {
		out.positional = r.list(a.positional)
	}
	if a.list != nil {
		v := a.list.eval(r)
		r.pos = pos
		out.positional = append(out.positional, must(elements(v))...)
	}
	if a.dict != nil || len(a.named) > 0 {
		out.named = map[string]any{}
	}
	if a.dict != nil {
		v := a.dict.eval(r)
		object, ok := v.(map[string]any)
		if r.pos = pos; !ok {
			panic(failf("** needs an object, not %s", typeName(v)))
		}
		maps.Copy(out.named, object)
	}
	for _, n := range a.named {
		out.named[n.name] = n.value.eval(r)
	}
	r.pos = pos
	return out
}

// truthy is [value.Truthy] for the values inside a template.
func truthy(v any) bool {
	switch v := v.(type) {
	case undefinedType:
		return false
	case *namespace, *pair, callable:
		return true
	default:
		return value.Truthy(v)
	}
}

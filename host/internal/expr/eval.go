package expr

import (
	"cmp"
	"fmt"
	"maps"

	"github.com/the-edge-agent/tea/host/internal/python"
	"github.com/the-edge-agent/tea/sdk/value"
)

func (n *literal) eval(*run) (any, error) { return n.value, nil }

func (n *path) eval(r *run) (any, error) {
	if bound, ok := r.vars.get(n.root); ok {
		v := walk(bound, n.steps)
		if v == undefined && !r.optional && len(r.roots) > 0 {
			object, _, key := n.missing(bound)
			return r.required(n, object, key, v, n.pos)
		}
		return v, nil
	}
	v := n.lookup(r.scope, r.template.bare)
	if v == undefined && !r.optional {
		return v, n.required(r.template, r.scope)
	}
	return r.container(n, v), nil
}

func (n *attribute) eval(r *run) (any, error) {
	object, err := n.object.eval(r)
	if err != nil {
		return nil, err
	}
	return r.required(n.object, object, n.name, field(object, n.name), n.pos)
}

func (n *subscript) eval(r *run) (any, error) {
	object, err := n.object.eval(r)
	if err != nil {
		return nil, err
	}
	key, err := n.key.eval(r)
	if err != nil {
		return nil, err
	}
	return r.required(n.object, object, key, at(object, key), n.pos)
}

func (n *listLiteral) eval(r *run) (any, error) {
	list, err := r.list(n.elements)
	if err != nil {
		return nil, err
	}
	return list, r.wrap(n.pos, cmp.Or(r.alive(), measuredParts(list)))
}

// measuredParts checks a list with other containers: by repeating one value on
// each level, a short text can create a huge value.
func measuredParts(list []any) error {
	for _, e := range list {
		switch e.(type) {
		case []any, map[string]any, *pair, *namespace:
			return measured(list)
		}
	}
	return nil
}

func (r *run) list(nodes []node) ([]any, error) {
	out := make([]any, len(nodes))
	for i, e := range nodes {
		var err error
		if out[i], err = e.eval(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (n *dictLiteral) eval(r *run) (any, error) {
	out := make(map[string]any, len(n.keys))
	for i := range n.keys {
		key, err := n.keys[i].eval(r)
		if err != nil {
			return nil, err
		}
		name, err := keyText(key)
		if err != nil {
			return nil, r.wrap(n.pos, err)
		}
		if out[name], err = n.values[i].eval(r); err != nil {
			return nil, err
		}
	}
	return out, r.wrap(n.pos, measured(out))
}

// keyText returns the key of an object: a string, or a scalar as its text.
func keyText(key any) (string, error) {
	switch key.(type) {
	case string, int64, float64, bool:
		return textOf(key)
	}
	return "", fmt.Errorf("%s cannot be the key of an object", typeName(key))
}

func (n *negation) eval(r *run) (any, error) {
	v, err := n.term.eval(r)
	return !truthy(v), err
}

func (n *logical) eval(r *run) (any, error) {
	left, err := n.left.eval(r)
	if err != nil || truthy(left) == n.or {
		return left, err
	}
	return n.right.eval(r)
}

func (n *conditional) eval(r *run) (any, error) {
	v, err := n.condition.eval(r)
	switch {
	case err != nil:
		return nil, err
	case truthy(v):
		return n.then.eval(r)
	case n.otherwise == nil:
		return undefined, nil
	}
	return n.otherwise.eval(r)
}

func (n *unary) eval(r *run) (any, error) {
	v, err := n.term.eval(r)
	if err != nil {
		return nil, err
	}
	if !python.IsNumber(v) {
		return nil, r.fail(n.pos, "%s has no sign", typeName(v))
	}
	if n.op == '-' {
		v = python.Negate(v)
	}
	return v, nil
}

func (n *binary) eval(r *run) (any, error) {
	left, err := n.left.eval(r)
	if err != nil {
		return nil, err
	}
	right, err := n.right.eval(r)
	if err != nil {
		return nil, err
	}
	if err := r.alive(); err != nil {
		return nil, r.wrap(n.pos, err)
	}
	v, err := operate(n.op, left, right)
	return v, r.wrap(n.pos, err)
}

func (n *comparison) eval(r *run) (any, error) {
	left, err := n.first.eval(r)
	if err != nil {
		return nil, err
	}
	for _, c := range n.rest {
		right, err := c.term.eval(r)
		if err != nil {
			return nil, err
		}
		if err := r.alive(); err != nil {
			return nil, r.wrap(c.pos, err)
		}
		holds, err := compare(c.op, left, right)
		if err != nil {
			return nil, r.wrap(c.pos, err)
		}
		if !holds {
			return false, nil
		}
		left = right
	}
	return true, nil
}

func (n *slicing) eval(r *run) (any, error) {
	object, err := n.object.eval(r)
	if err != nil {
		return nil, err
	}
	var bounds [3]*int
	for i, part := range []node{n.start, n.stop, n.step} {
		if part == nil {
			continue
		}
		v, err := part.eval(r)
		if err != nil {
			return nil, err
		}
		if isNull(v) {
			continue
		}
		whole, ok := v.(int64)
		if !ok {
			return nil, r.fail(n.pos, "a slice needs integers, not %s", typeName(v))
		}
		bound := clamp(whole)
		bounds[i] = &bound
	}
	v, err := slice(object, bounds[0], bounds[1], bounds[2])
	return v, r.wrap(n.pos, err)
}

func (n *filtered) eval(r *run) (any, error) {
	input, err := r.input(n.input, n.name == "default" || n.name == "d" || n.name == "attr" && r.optional)
	if err != nil {
		return nil, err
	}
	return n.apply(r, input)
}

func (n *filtered) apply(r *run, input any) (any, error) {
	args, err := r.args(&n.args, n.pos)
	if err != nil {
		return nil, err
	}
	v, err := r.call(n.filter, "filter "+n.name, input, args)
	if err == nil && n.name == "attr" && len(args.positional) > 0 {
		return r.required(n.input, input, args.positional[0], v, n.pos)
	}
	return v, r.wrap(n.pos, err)
}

func (n *tested) eval(r *run) (any, error) {
	input, err := r.input(n.input, n.name == "defined" || n.name == "undefined")
	if err != nil {
		return nil, err
	}
	args, err := r.args(&n.args, n.pos)
	if err != nil {
		return nil, err
	}
	v, err := r.call(n.test, "test "+n.name, input, args)
	if err != nil {
		return nil, r.wrap(n.pos, err)
	}
	return truthy(v) != n.negate, nil
}

// callable is a value inside a template that can be called by its name.
type callable interface {
	call(r *run, args values, pos int) (any, error)
}

func (n *call) eval(r *run) (any, error) {
	args, err := r.args(&n.args, n.pos)
	if err != nil {
		return nil, err
	}
	if v, ok := r.vars.get(n.name); ok {
		if callee, ok := v.(callable); ok {
			return callee.call(r, args, n.pos)
		}
	}
	f, ok := functions()[n.name]
	if !ok {
		return nil, r.fail(n.pos, "%q is not a macro here", n.name)
	}
	v, err := r.call(f, n.name+"()", nil, args)
	return v, r.wrap(n.pos, err)
}

func (n *methodCall) eval(r *run) (any, error) {
	object, err := n.object.eval(r)
	if err != nil {
		return nil, err
	}
	args, err := r.args(&n.args, n.pos)
	if err != nil {
		return nil, err
	}
	v, err := r.method(object, n.name, args)
	if err == nil && n.name == "get" && len(args.positional) == 1 && len(args.named) == 0 {
		return r.required(n.object, object, args.positional[0], v, n.pos)
	}
	return v, r.wrap(n.pos, err)
}

// values are the evaluated arguments of a call.
type values struct {
	positional []any
	named      map[string]any
}

// args evaluates arguments.
func (r *run) args(a *arguments, pos int) (values, error) {
	var out values
	var err error
	if len(a.positional) > 0 {
		if out.positional, err = r.list(a.positional); err != nil {
			return out, err
		}
	}
	if a.list != nil {
		v, err := a.list.eval(r)
		if err != nil {
			return out, err
		}
		more, err := elements(v)
		if err != nil {
			return out, r.wrap(pos, err)
		}
		out.positional = append(out.positional, more...)
	}
	if a.dict == nil && len(a.named) == 0 {
		return out, nil
	}
	out.named = map[string]any{}
	if a.dict != nil {
		v, err := a.dict.eval(r)
		if err != nil {
			return out, err
		}
		object, ok := v.(map[string]any)
		if !ok {
			return out, r.fail(pos, "** needs an object, not %s", typeName(v))
		}
		maps.Copy(out.named, object)
	}
	for _, n := range a.named {
		if out.named[n.name], err = n.value.eval(r); err != nil {
			return out, err
		}
	}
	return out, nil
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

package jmespath

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jmespath-community/go-jmespath/pkg/parsing"

	"github.com/the-edge-agent/tea/host/internal/python"
)

// Bounds of the steps of one evaluation, as small expressions can have huge
// results: baseSteps, and stepsPerValue for each value in the data.
const (
	baseSteps     = 1_000_000
	stepsPerValue = 50
)

// Search evaluates the expression on data. It does not change data; the result
// can share parts of it. It fails if a function or operator does not support
// its arguments, or with the context's error.
func (e *Expression) Search(ctx context.Context, data any) (any, error) {
	r := &run{ctx: ctx, root: data, functions: e.functions, left: baseSteps + stepsPerValue*sizeOf(data)}
	v, err := r.eval(&e.root, data)
	if err != nil {
		return nil, err
	}
	return v, r.measure(v)
}

// run is one evaluation. It belongs to one goroutine.
type run struct {
	ctx       context.Context
	root      any
	functions map[string]function
	variables *variable
	left      int // steps
}

// variable is one binding of let; inner ones hide outer ones.
type variable struct {
	name  string
	value any
	outer *variable
}

// expref is an expression argument of a function, with its variables.
type expref struct {
	node      *parsing.ASTNode
	variables *variable
}

// spend counts steps of work.
func (r *run) spend(steps int) error {
	before := r.left
	r.left -= steps
	if r.left < 0 {
		return errors.New("the evaluation takes too many steps for this data")
	}
	if before>>10 != r.left>>10 {
		return r.ctx.Err()
	}
	return nil
}

// sizeOf counts the values in v, v itself included.
func sizeOf(v any) int {
	size := 1
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			size += sizeOf(e)
		}
	case map[string]any:
		for _, e := range v {
			size += sizeOf(e)
		}
	}
	return size
}

// measure counts a value's parts. A value can contain the same part many times,
// so that a small one is huge when it is written.
func (r *run) measure(v any) error {
	if err := r.spend(1); err != nil {
		return err
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if err := r.measure(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, e := range v {
			if err := r.measure(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) eval(n *parsing.ASTNode, v any) (any, error) {
	if err := r.spend(1); err != nil {
		return nil, err
	}
	switch n.NodeType {
	case parsing.ASTIdentity, parsing.ASTCurrentNode:
		return v, nil
	case parsing.ASTRootNode:
		return r.root, nil
	case parsing.ASTLiteral:
		return n.Value, nil
	case parsing.ASTField:
		object, _ := v.(map[string]any)
		return object[n.Value.(string)], nil
	case parsing.ASTIndex:
		return index(v, n.Value.(int)), nil
	case parsing.ASTSlice:
		return r.slice(v, n.Value.([]*int))
	case parsing.ASTSubexpression, parsing.ASTIndexExpression:
		return r.sub(n, v)
	case parsing.ASTPipe:
		return r.pipe(n, v)
	case parsing.ASTProjection, parsing.ASTFilterProjection, parsing.ASTValueProjection, parsing.ASTFlatten:
		return r.projection(n, v)
	case parsing.ASTMultiSelectList, parsing.ASTMultiSelectHash:
		return r.multiSelect(n, v)
	case parsing.ASTKeyValPair:
		return r.eval(&n.Children[0], v)
	case parsing.ASTExpRef:
		return expref{node: &n.Children[0], variables: r.variables}, nil
	case parsing.ASTFunctionExpression:
		return r.call(n, v)
	case parsing.ASTVariable:
		return r.lookUp(n.Value.(string))
	case parsing.ASTLetExpression:
		return r.let(n, v)
	}
	return r.operator(n, v)
}

func (r *run) sub(n *parsing.ASTNode, v any) (any, error) {
	left, err := r.eval(&n.Children[0], v)
	if err != nil || left == nil {
		return nil, err
	}
	return r.eval(&n.Children[1], left)
}

func (r *run) pipe(n *parsing.ASTNode, v any) (any, error) {
	var err error
	for i := range n.Children {
		if v, err = r.eval(&n.Children[i], v); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (r *run) multiSelect(n *parsing.ASTNode, v any) (any, error) {
	if n.NodeType == parsing.ASTMultiSelectHash {
		object := make(map[string]any, len(n.Children))
		for i := range n.Children {
			child := &n.Children[i]
			member, err := r.eval(child, v)
			if err != nil {
				return nil, err
			}
			object[child.Value.(string)] = member
		}
		return object, nil
	}
	list := make([]any, len(n.Children))
	for i := range n.Children {
		var err error
		if list[i], err = r.eval(&n.Children[i], v); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (r *run) lookUp(name string) (any, error) {
	for b := r.variables; b != nil; b = b.outer {
		if b.name == name {
			return b.value, nil
		}
	}
	return nil, fmt.Errorf("the variable %s is not defined", name)
}

func (r *run) let(n *parsing.ASTNode, v any) (any, error) {
	outer := r.variables
	defer func() { r.variables = outer }()
	inner := outer
	for i := range n.Children[0].Children {
		b := &n.Children[0].Children[i]
		bound, err := r.eval(&b.Children[1], v)
		if err != nil {
			return nil, err
		}
		inner = &variable{name: b.Children[0].Value.(string), value: bound, outer: inner}
	}
	r.variables = inner
	return r.eval(&n.Children[1], v)
}

// apply evaluates an expression argument of a function.
func (r *run) apply(e expref, v any) (any, error) {
	outer := r.variables
	defer func() { r.variables = outer }()
	r.variables = e.variables
	return r.eval(e.node, v)
}

// projection evaluates the right side of a projection for each element of the
// left side, and omits nulls.
func (r *run) projection(n *parsing.ASTNode, v any) (any, error) {
	left, err := r.eval(&n.Children[0], v)
	if err != nil {
		return nil, err
	}
	if n.NodeType == parsing.ASTFlatten {
		return r.flatten(left)
	}
	if s, ok := left.(string); ok && isSlice(&n.Children[0]) {
		return s, nil
	}
	list, ok := left.([]any)
	if n.NodeType == parsing.ASTValueProjection {
		var object map[string]any
		if object, ok = left.(map[string]any); ok {
			list = valuesOf(object)
		}
	}
	if !ok {
		return nil, nil
	}
	out := []any{}
	for _, element := range list {
		if n.NodeType == parsing.ASTFilterProjection {
			keep, err := r.eval(&n.Children[2], element)
			if err != nil {
				return nil, err
			}
			if isFalse(keep) {
				continue
			}
		}
		projected, err := r.eval(&n.Children[1], element)
		if err != nil {
			return nil, err
		}
		if projected != nil {
			out = append(out, projected)
		}
	}
	return out, nil
}

// isSlice reports whether n ends in a slice, whose result can be a string.
func isSlice(n *parsing.ASTNode) bool {
	return n.NodeType == parsing.ASTIndexExpression && len(n.Children) > 1 && n.Children[1].NodeType == parsing.ASTSlice
}

func (r *run) flatten(v any) (any, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, nil
	}
	out := []any{}
	for _, element := range list {
		inner, ok := element.([]any)
		if !ok {
			inner = []any{element}
		}
		if err := r.spend(len(inner)); err != nil {
			return nil, err
		}
		out = append(out, inner...)
	}
	return out, nil
}

func valuesOf(object map[string]any) []any {
	values := make([]any, 0, len(object))
	for _, k := range slices.Sorted(maps.Keys(object)) {
		values = append(values, object[k])
	}
	return values
}

func index(v any, i int) any {
	list, ok := v.([]any)
	if !ok {
		return nil
	}
	if i < 0 {
		i += len(list)
	}
	if i < 0 || i >= len(list) {
		return nil
	}
	return list[i]
}

func (r *run) slice(v any, parts []*int) (any, error) {
	if parts[2] != nil && *parts[2] == 0 {
		return nil, fmt.Errorf("the step of a slice cannot be 0")
	}
	switch v := v.(type) {
	case []any:
		return cut(v, parts), r.spend(len(v))
	case string:
		return string(cut([]rune(v), parts)), r.spend(len(v))
	}
	return nil, nil
}

// cut returns list[start:stop:step]; each of parts can be nil.
func cut[T any](list []T, parts []*int) []T {
	step := 1
	if parts[2] != nil {
		step = *parts[2]
	}
	out := []T{}
	for i := range python.Indices(len(list), parts[0], parts[1], step) {
		out = append(out, list[i])
	}
	return out
}

package jmespath

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jmespath-community/go-jmespath/pkg/parsing"

	"github.com/the-edge-agent/tea/host/internal/python"
	"github.com/the-edge-agent/tea/sdk/value"
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
func (e *Expression) Search(ctx context.Context, data any) (result any, err error) {
	r := &run{ctx: ctx, root: data, functions: e.functions, left: baseSteps + stepsPerValue*value.Size(data)}
	defer r.catch(&err)
	v := r.eval(&e.root, data)
	r.measure(v)
	return v, nil
}

// failure is the value that an evaluation panics with: the code that evaluates
// an expression returns no errors.
type failure struct{ error }

// catch recovers the error of an evaluation.
func (r *run) catch(err *error) {
	switch p := recover().(type) {
	case nil:
	case failure:
		*err = p.error
		for _, name := range slices.Backward(r.calls) {
			*err = fmt.Errorf("%s(): %w", name, *err)
		}
	default:
		panic(p)
	}
}

func failf(format string, args ...any) failure { return failure{fmt.Errorf(format, args...)} }

// must returns v, or fails with the error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(failure{err})
	}
	return v
}

// run is one evaluation. It belongs to one goroutine.
type run struct {
	ctx       context.Context
	root      any
	functions map[string]function
	variables *variable
	calls     []string // the functions that run, the outer ones first
	left      int      // steps
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
func (r *run) spend(steps int) {
	before := r.left
	r.left -= steps
	if r.left < 0 {
		panic(failf("the evaluation takes too many steps for this data"))
	}
	if before>>10 != r.left>>10 && r.ctx.Err() != nil {
		panic(failure{r.ctx.Err()})
	}
}

// measure counts a value's parts, repeated ones each time: a small value that
// contains the same part many times can be huge when written.
func (r *run) measure(v any) {
	r.spend(1)
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			r.measure(e)
		}
	case map[string]any:
		for _, e := range v {
			r.measure(e)
		}
	}
}

func (r *run) eval(n *parsing.ASTNode, v any) any {
	r.spend(1)
	switch n.NodeType {
	case parsing.ASTIdentity, parsing.ASTCurrentNode:
		return v
	case parsing.ASTRootNode:
		return r.root
	case parsing.ASTLiteral:
		return n.Value
	case parsing.ASTField:
		object, _ := v.(map[string]any)
		return object[n.Value.(string)]
	case parsing.ASTIndex:
		return index(v, n.Value.(int))
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
		return expref{node: &n.Children[0], variables: r.variables}
	case parsing.ASTFunctionExpression:
		return r.call(n, v)
	case parsing.ASTVariable:
		return r.lookUp(n.Value.(string))
	case parsing.ASTLetExpression:
		return r.let(n, v)
	}
	return r.operator(n, v)
}

func (r *run) sub(n *parsing.ASTNode, v any) any {
	if left := r.eval(&n.Children[0], v); left != nil {
		return r.eval(&n.Children[1], left)
	}
	return nil
}

func (r *run) pipe(n *parsing.ASTNode, v any) any {
	for i := range n.Children {
		v = r.eval(&n.Children[i], v)
	}
	return v
}

func (r *run) multiSelect(n *parsing.ASTNode, v any) any {
	if n.NodeType == parsing.ASTMultiSelectHash {
		object := make(map[string]any, len(n.Children))
		for i := range n.Children {
			object[n.Children[i].Value.(string)] = r.eval(&n.Children[i], v)
		}
		return object
	}
	list := make([]any, len(n.Children))
	for i := range n.Children {
		list[i] = r.eval(&n.Children[i], v)
	}
	return list
}

func (r *run) lookUp(name string) any {
	for b := r.variables; b != nil; b = b.outer {
		if b.name == name {
			return b.value
		}
	}
	panic(failf("the variable %s is not defined", name))
}

func (r *run) let(n *parsing.ASTNode, v any) any {
	outer := r.variables
	defer func() { r.variables = outer }()
	inner := outer
	for i := range n.Children[0].Children {
		b := &n.Children[0].Children[i]
		inner = &variable{name: b.Children[0].Value.(string), value: r.eval(&b.Children[1], v), outer: inner}
	}
	r.variables = inner
	return r.eval(&n.Children[1], v)
}

// apply evaluates an expression argument of a function.
func (r *run) apply(e expref, v any) any {
	outer := r.variables
	defer func() { r.variables = outer }()
	r.variables = e.variables
	return r.eval(e.node, v)
}

// projection evaluates the right side of a projection for each element of the
// left side, and omits nulls.
func (r *run) projection(n *parsing.ASTNode, v any) any {
	left := r.eval(&n.Children[0], v)
	if n.NodeType == parsing.ASTFlatten {
		return r.flatten(left)
	}
	if s, ok := left.(string); ok && isSlice(&n.Children[0]) {
		return s
	}
	list, ok := left.([]any)
	if n.NodeType == parsing.ASTValueProjection {
		var object map[string]any
		if object, ok = left.(map[string]any); ok {
			list = valuesOf(object)
		}
	}
	if !ok {
		return nil
	}
	out := []any{}
	for _, element := range list {
		if n.NodeType == parsing.ASTFilterProjection {
			if isFalse(r.eval(&n.Children[2], element)) {
				continue
			}
		}
		if projected := r.eval(&n.Children[1], element); projected != nil {
			out = append(out, projected)
		}
	}
	return out
}

// isSlice reports whether n ends in a slice, whose result can be a string.
func isSlice(n *parsing.ASTNode) bool {
	return n.NodeType == parsing.ASTIndexExpression && len(n.Children) > 1 && n.Children[1].NodeType == parsing.ASTSlice
}

func (r *run) flatten(v any) any {
	list, ok := v.([]any)
	if !ok {
		return nil
	}
	out := []any{}
	for _, element := range list {
		inner, ok := element.([]any)
		if !ok {
			inner = []any{element}
		}
		r.spend(len(inner))
		out = append(out, inner...)
	}
	return out
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

func (r *run) slice(v any, parts []*int) any {
	if parts[2] != nil && *parts[2] == 0 {
		panic(failf("the step of a slice cannot be 0"))
	}
	switch v := v.(type) {
	case []any:
		r.spend(len(v))
		return cut(v, parts)
	case string:
		r.spend(len(v))
		return string(cut([]rune(v), parts))
	}
	return nil
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

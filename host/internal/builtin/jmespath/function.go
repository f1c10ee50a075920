package jmespath

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/jmespath-community/go-jmespath/pkg/parsing"

	"github.com/the-edge-agent/tea/sdk/value"
)

// kind is a type of a function's argument.
type kind string

const (
	anything kind = "any value"
	number   kind = "number"
	text     kind = "string"
	array    kind = "array"
	object   kind = "object"
	numbers  kind = "array of numbers"
	texts    kind = "array of strings"
	arrays   kind = "array of arrays"
	exprs    kind = "expression (&...)"
)

// function is one function of the language.
type function struct {
	// params are the kinds of each argument.
	params [][]kind
	// optional is the number of params at the end that can be omitted.
	optional int
	// variadic reports whether the last one can be repeated.
	variadic bool
	call     func(r *run, args []any) any
}

// functions returns the table of all functions by name.
func functions() map[string]function {
	one := func(kinds ...kind) [][]kind { return [][]kind{kinds} }
	both := func(a, b kind) [][]kind { return [][]kind{{a}, {b}} }
	return map[string]function{
		"abs":         {params: one(number), call: abs},
		"avg":         {params: one(numbers), call: avg},
		"ceil":        {params: one(number), call: func(_ *run, args []any) any { return rounded(args[0], math.Ceil) }},
		"contains":    {params: [][]kind{{array, text}, {anything}}, call: contains},
		"ends_with":   {params: both(text, text), call: func(_ *run, args []any) any { return strings.HasSuffix(args[0].(string), args[1].(string)) }},
		"find_first":  {params: [][]kind{{text}, {text}, {number}, {number}}, optional: 2, call: func(_ *run, args []any) any { return find(args, strings.Index) }},
		"find_last":   {params: [][]kind{{text}, {text}, {number}, {number}}, optional: 2, call: func(_ *run, args []any) any { return find(args, strings.LastIndex) }},
		"floor":       {params: one(number), call: func(_ *run, args []any) any { return rounded(args[0], math.Floor) }},
		"from_items":  {params: one(arrays), call: fromItems},
		"group_by":    {params: both(array, exprs), call: groupBy},
		"items":       {params: one(object), call: items},
		"join":        {params: both(text, texts), call: join},
		"keys":        {params: one(object), call: keys},
		"length":      {params: one(text, array, object), call: length},
		"lower":       {params: one(text), call: func(_ *run, args []any) any { return strings.ToLower(args[0].(string)) }},
		"map":         {params: both(exprs, array), call: func(r *run, args []any) any { return r.applyEach(args[0].(expref), args[1].([]any)) }},
		"max":         {params: one(numbers, texts), call: func(_ *run, args []any) any { return best(byItself(args[0]), -1) }},
		"max_by":      {params: both(array, exprs), call: func(r *run, args []any) any { return best(r.rank(args), -1) }},
		"merge":       {params: one(object), variadic: true, call: merge},
		"min":         {params: one(numbers, texts), call: func(_ *run, args []any) any { return best(byItself(args[0]), 1) }},
		"min_by":      {params: both(array, exprs), call: func(r *run, args []any) any { return best(r.rank(args), 1) }},
		"not_null":    {params: one(anything), variadic: true, call: notNull},
		"pad_left":    {params: [][]kind{{text}, {number}, {text}}, optional: 1, call: func(r *run, args []any) any { return padding(r, args) + args[0].(string) }},
		"pad_right":   {params: [][]kind{{text}, {number}, {text}}, optional: 1, call: func(r *run, args []any) any { return args[0].(string) + padding(r, args) }},
		"replace":     {params: [][]kind{{text}, {text}, {text}, {number}}, optional: 1, call: replace},
		"reverse":     {params: one(array, text), call: reverse},
		"sort":        {params: one(numbers, texts), call: sorted},
		"sort_by":     {params: both(array, exprs), call: sortBy},
		"split":       {params: [][]kind{{text}, {text}, {number}}, optional: 1, call: split},
		"starts_with": {params: both(text, text), call: func(_ *run, args []any) any { return strings.HasPrefix(args[0].(string), args[1].(string)) }},
		"sum":         {params: one(numbers), call: sum},
		"to_array":    {params: one(anything), call: toArray},
		"to_number":   {params: one(anything), call: toNumber},
		"to_string":   {params: one(anything), call: toString},
		"trim":        {params: both(text, text), optional: 1, call: func(_ *run, args []any) any { return trimmed(args, strings.TrimFunc) }},
		"trim_left":   {params: both(text, text), optional: 1, call: func(_ *run, args []any) any { return trimmed(args, strings.TrimLeftFunc) }},
		"trim_right":  {params: both(text, text), optional: 1, call: func(_ *run, args []any) any { return trimmed(args, strings.TrimRightFunc) }},
		"type":        {params: one(anything), call: typeOf},
		"upper":       {params: one(text), call: func(_ *run, args []any) any { return strings.ToUpper(args[0].(string)) }},
		"values":      {params: one(object), call: func(_ *run, args []any) any { return valuesOf(args[0].(map[string]any)) }},
		"zip":         {params: one(array), variadic: true, call: zip},
	}
}

// countProblem describes a wrong number of arguments; "" if it is right.
func (f function) countProblem(name string, given int) string {
	least, most := len(f.params)-f.optional, len(f.params)
	want := fmt.Sprint(least)
	switch {
	case f.variadic:
		want = "at least " + want
		most = given
	case least < most:
		want = fmt.Sprintf("%d to %d", least, most)
	}
	if given < least || given > most {
		return fmt.Sprintf("%s() needs %s arguments, got %d", name, want, given)
	}
	return ""
}

// call evaluates the arguments, checks their types and calls the function.
func (r *run) call(n *parsing.ASTNode, v any) any {
	name := n.Value.(string)
	f := r.functions[name]
	args := make([]any, len(n.Children))
	for i := range n.Children {
		args[i] = r.eval(&n.Children[i], v)
		kinds := f.params[min(i, len(f.params)-1)]
		r.spend(size(args[i]))
		if !slices.ContainsFunc(kinds, func(k kind) bool { return k.fits(args[i]) }) {
			panic(failf("%s() needs %s as argument %d, got %s", name, orList(kinds), i+1, typeName(args[i])))
		}
	}
	r.calls = append(r.calls, name)
	result := f.call(r, args)
	r.calls = r.calls[:len(r.calls)-1]
	r.spend(size(result))
	return result
}

// size is the number of steps of a function that reads or creates v.
func size(v any) int {
	switch v := v.(type) {
	case []any:
		return len(v)
	case map[string]any:
		return len(v)
	case string:
		return len(v) / 16
	}
	return 0
}

func (k kind) fits(v any) bool {
	list, isList := v.([]any)
	all := func(element kind) bool {
		return isList && !slices.ContainsFunc(list, func(e any) bool { return !element.fits(e) })
	}
	switch k {
	case number:
		return value.IsNumber(v)
	case numbers:
		return all(number)
	case texts:
		return all(text)
	case arrays:
		return all(array)
	case array:
		return isList
	case text:
		_, ok := v.(string)
		return ok
	case object:
		_, ok := v.(map[string]any)
		return ok
	case exprs:
		_, ok := v.(expref)
		return ok
	}
	_, isExpr := v.(expref)
	return !isExpr
}

func orList(kinds []kind) string {
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = string(k)
	}
	return strings.Join(words, " or ")
}

func typeName(v any) string {
	if _, ok := v.(expref); ok {
		return "an expression"
	}
	if list, ok := v.([]any); ok && len(list) > 0 {
		return "array of " + typeName(list[0]) + " ..."
	}
	if value.IsNumber(v) {
		return "number"
	}
	return value.TypeName(v)
}

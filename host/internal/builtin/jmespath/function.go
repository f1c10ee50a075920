package jmespath

import (
	"fmt"
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
	// variadic reports that the last one can be repeated.
	variadic bool
	call     func(r *run, args []any) (any, error)
}

// functions returns the table of all functions by name.
func functions() map[string]function {
	one := func(kinds ...kind) [][]kind { return [][]kind{kinds} }
	both := func(a, b kind) [][]kind { return [][]kind{{a}, {b}} }
	return map[string]function{
		"abs":         {params: one(number), call: abs},
		"avg":         {params: one(numbers), call: avg},
		"ceil":        {params: one(number), call: ceil},
		"contains":    {params: [][]kind{{array, text}, {anything}}, call: contains},
		"ends_with":   {params: both(text, text), call: endsWith},
		"find_first":  {params: [][]kind{{text}, {text}, {number}, {number}}, optional: 2, call: findFirst},
		"find_last":   {params: [][]kind{{text}, {text}, {number}, {number}}, optional: 2, call: findLast},
		"floor":       {params: one(number), call: floor},
		"from_items":  {params: one(arrays), call: fromItems},
		"group_by":    {params: both(array, exprs), call: groupBy},
		"items":       {params: one(object), call: items},
		"join":        {params: both(text, texts), call: join},
		"keys":        {params: one(object), call: keys},
		"length":      {params: one(text, array, object), call: length},
		"lower":       {params: one(text), call: lower},
		"map":         {params: both(exprs, array), call: mapping},
		"max":         {params: one(numbers, texts), call: maximum},
		"max_by":      {params: both(array, exprs), call: maxBy},
		"merge":       {params: one(object), variadic: true, call: merge},
		"min":         {params: one(numbers, texts), call: minimum},
		"min_by":      {params: both(array, exprs), call: minBy},
		"not_null":    {params: one(anything), variadic: true, call: notNull},
		"pad_left":    {params: [][]kind{{text}, {number}, {text}}, optional: 1, call: padLeft},
		"pad_right":   {params: [][]kind{{text}, {number}, {text}}, optional: 1, call: padRight},
		"replace":     {params: [][]kind{{text}, {text}, {text}, {number}}, optional: 1, call: replace},
		"reverse":     {params: one(array, text), call: reverse},
		"sort":        {params: one(numbers, texts), call: sorted},
		"sort_by":     {params: both(array, exprs), call: sortBy},
		"split":       {params: [][]kind{{text}, {text}, {number}}, optional: 1, call: split},
		"starts_with": {params: both(text, text), call: startsWith},
		"sum":         {params: one(numbers), call: sum},
		"to_array":    {params: one(anything), call: toArray},
		"to_number":   {params: one(anything), call: toNumber},
		"to_string":   {params: one(anything), call: toString},
		"trim":        {params: both(text, text), optional: 1, call: trim},
		"trim_left":   {params: both(text, text), optional: 1, call: trimLeft},
		"trim_right":  {params: both(text, text), optional: 1, call: trimRight},
		"type":        {params: one(anything), call: typeOf},
		"upper":       {params: one(text), call: upper},
		"values":      {params: one(object), call: values},
		"zip":         {params: one(array), variadic: true, call: zip},
	}
}

func (f function) checkCount(name string, given int) error {
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
		return fmt.Errorf("%s() needs %s arguments, got %d", name, want, given)
	}
	return nil
}

// call evaluates the arguments, checks their types and calls the function.
func (r *run) call(n *parsing.ASTNode, v any) (any, error) {
	name := n.Value.(string)
	f := r.functions[name]
	args := make([]any, len(n.Children))
	for i := range n.Children {
		var err error
		if args[i], err = r.eval(&n.Children[i], v); err != nil {
			return nil, err
		}
		kinds := f.params[min(i, len(f.params)-1)]
		if err := r.spend(size(args[i])); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(kinds, func(k kind) bool { return k.fits(args[i]) }) {
			return nil, fmt.Errorf("%s() needs %s as argument %d, got %s", name, orList(kinds), i+1, typeName(args[i]))
		}
	}
	result, err := f.call(r, args)
	if err != nil {
		return nil, fmt.Errorf("%s(): %w", name, err)
	}
	return result, r.spend(size(result))
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

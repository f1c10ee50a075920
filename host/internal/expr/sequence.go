package expr

import (
	"fmt"

	"github.com/the-edge-agent/tea/host/internal/python"
)

// pair is an element of groupby's result: the list [grouper, list] with named
// fields.
type pair struct {
	grouper  any
	elements []any
}

func (p *pair) list() []any { return []any{p.grouper, p.elements} }

func (p *pair) field(name string) any {
	switch name {
	case "grouper":
		return p.grouper
	case "list":
		return p.elements
	}
	return undefined
}

// elements returns the elements for a loop: a list's elements, an object's keys
// in order, a string's characters, none for null.
func elements(v any) ([]any, error) {
	switch v := v.(type) {
	case nil, undefinedType:
		return []any{}, nil
	case []any:
		return v, nil
	case *pair:
		return v.list(), nil
	case map[string]any:
		out := make([]any, 0, len(v))
		for _, k := range keys(v) {
			out = append(out, k)
		}
		return out, nil
	case string:
		if len(v) > maxElements {
			return nil, fmt.Errorf("the text has more than %d characters", maxElements)
		}
		out := make([]any, 0, len(v))
		for _, r := range v {
			out = append(out, string(r))
		}
		return out, nil
	}
	return nil, fmt.Errorf("%s has no elements", typeName(v))
}

// slice returns v[start:stop:step] by Python's rules; a nil bound is absent.
func slice(v any, start, stop, step *int) any {
	by := 1
	if step != nil {
		by = *step
	}
	if by == 0 {
		panic(failf("the step of a slice cannot be 0"))
	}
	switch v := plainValue(v).(type) {
	case nil:
		return undefined
	case string:
		runes := []rune(v)
		var out []rune
		for i := range python.Indices(len(runes), start, stop, by) {
			out = append(out, runes[i])
		}
		return string(out)
	case []any:
		out := []any{}
		for i := range python.Indices(len(v), start, stop, by) {
			out = append(out, v[i])
		}
		return out
	}
	panic(failf("cannot slice %s", typeName(v)))
}

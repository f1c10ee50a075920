package expr

import (
	"fmt"

	"github.com/the-edge-agent/tea/sdk/diag"
)

func selectionFilters() map[string]filter {
	return map[string]filter{
		"attr":       {params: params("name"), required: 1, apply: func(a *args) (any, error) { return at(a.in, a.any(0, "")), nil }},
		"map":        {variadic: true, apply: mapFilter},
		"select":     {variadic: true, apply: func(a *args) (any, error) { return choose(a, false, true) }},
		"reject":     {variadic: true, apply: func(a *args) (any, error) { return choose(a, false, false) }},
		"selectattr": {variadic: true, apply: func(a *args) (any, error) { return choose(a, true, true) }},
		"rejectattr": {variadic: true, apply: func(a *args) (any, error) { return choose(a, true, false) }},
	}
}

// mapFilter is map(attribute="a.b") or map("filter", arguments...).
func mapFilter(a *args) (any, error) {
	apply, err := mapping(a)
	if err != nil {
		return nil, err
	}
	list := a.elements()
	out := make([]any, 0, len(list))
	for _, v := range list {
		if err := a.run.tick(); err != nil {
			return nil, err
		}
		if v, err = apply(v); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func mapping(a *args) (func(v any) (any, error), error) {
	if attribute, ok := a.values.named["attribute"]; ok {
		fallback := undefined
		if v, ok := a.values.named["default"]; ok {
			fallback = v
		}
		return func(v any) (any, error) {
			if v = attributeOf(v, attribute); v == undefined {
				return fallback, nil
			}
			return v, nil
		}, nil
	}
	if len(a.values.positional) == 0 {
		return nil, fmt.Errorf(`map needs the name of a filter, or attribute="name"`)
	}
	f, name, err := named(filters(), "filter", a.values.positional[0])
	if err != nil {
		return nil, err
	}
	rest := values{positional: a.values.positional[1:], named: a.values.named}
	return func(v any) (any, error) { return a.run.call(f, "filter "+name, v, rest) }, nil
}

// named returns a filter or test by a name that is a value.
func named(table map[string]filter, kind string, name any) (filter, string, error) {
	s, ok := name.(string)
	if !ok {
		return filter{}, "", fmt.Errorf("the name of a %s must be a string, not %s", kind, typeName(name))
	}
	f, ok := table[s]
	if !ok {
		return filter{}, "", &hintedError{fmt.Sprintf("unknown %s %q", kind, s), diag.Suggest(s, keys(table))}
	}
	return f, s, nil
}

// choose returns the elements for which a test, or the truth of the element, is
// wanted; with byAttribute the first argument is the tested attribute.
func choose(a *args, byAttribute, wanted bool) (any, error) {
	rest := a.values.positional
	var attribute any
	if byAttribute {
		if len(rest) == 0 {
			return nil, fmt.Errorf("%s needs the name of an attribute", a.what)
		}
		attribute, rest = rest[0], rest[1:]
	}
	holds := func(v any) (any, error) { return truthy(v), nil }
	if len(rest) > 0 {
		test, name, err := named(tests(), "test", rest[0])
		if err != nil {
			return nil, err
		}
		arguments := values{positional: rest[1:], named: a.values.named}
		holds = func(v any) (any, error) { return a.run.call(test, "test "+name, v, arguments) }
	}
	out := []any{}
	for _, v := range a.elements() {
		if err := a.run.tick(); err != nil {
			return nil, err
		}
		subject := v
		if byAttribute {
			subject = attributeOf(v, attribute)
		}
		result, err := holds(subject)
		if err != nil {
			return nil, err
		}
		if truthy(result) == wanted {
			out = append(out, v)
		}
	}
	return out, nil
}

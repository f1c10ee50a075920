package expr

import (
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

func selectionFilters() map[string]filter {
	return map[string]filter{
		"attr":       {params: params("name"), required: 1, apply: func(a *args) any { return at(a.in, a.any(0, "")) }},
		"map":        {variadic: true, apply: mapFilter},
		"select":     {variadic: true, apply: func(a *args) any { return choose(a, false, true) }},
		"reject":     {variadic: true, apply: func(a *args) any { return choose(a, false, false) }},
		"selectattr": {variadic: true, apply: func(a *args) any { return choose(a, true, true) }},
		"rejectattr": {variadic: true, apply: func(a *args) any { return choose(a, true, false) }},
	}
}

// mapFilter is map(attribute="a.b") or map("filter", arguments...).
func mapFilter(a *args) any {
	apply := mapping(a)
	list := a.elements()
	out := make([]any, 0, len(list))
	for _, v := range list {
		a.run.tick()
		out = append(out, apply(v))
	}
	return out
}

func mapping(a *args) func(v any) any {
	if attribute, ok := a.values.named["attribute"]; ok {
		fallback := undefined
		if v, ok := a.values.named["default"]; ok {
			fallback = v
		}
		return func(v any) any {
			if v = attributeOf(v, attribute); v == undefined {
				return fallback
			}
			return v
		}
	}
	if len(a.values.positional) == 0 {
		panic(failf(`map needs the name of a filter, or attribute="name"`))
	}
	f, name := named(filters(), "filter", a.values.positional[0])
	rest := values{positional: a.values.positional[1:], named: a.values.named}
	return func(v any) any { return a.run.call(f, "filter "+name, v, rest) }
}

// named returns a filter or test by a name that is a value.
func named(table map[string]filter, kind string, name any) (filter, string) {
	s, ok := name.(string)
	if !ok {
		panic(failf("the name of a %s must be a string, not %s", kind, typeName(name)))
	}
	f, ok := table[s]
	if !ok {
		panic(failf("unknown %s %q", kind, s).hinted(diag.Suggest(s, keys(table))))
	}
	return f, s
}

// choose returns the elements for which a test, or the truth of the element, is
// wanted; with byAttribute the first argument is the tested attribute.
func choose(a *args, byAttribute, wanted bool) any {
	rest := a.values.positional
	var attribute any
	if byAttribute {
		if len(rest) == 0 {
			panic(failf("%s needs the name of an attribute", a.what))
		}
		attribute, rest = rest[0], rest[1:]
	}
	holds := func(v any) any { return v }
	if len(rest) > 0 {
		test, name := named(tests(), "test", rest[0])
		arguments := values{positional: rest[1:], named: a.values.named}
		holds = func(v any) any { return a.run.call(test, "test "+name, v, arguments) }
	}
	out := []any{}
	for _, v := range a.elements() {
		a.run.tick()
		subject := v
		if byAttribute {
			subject = attributeOf(v, attribute)
		}
		if truthy(holds(subject)) == wanted {
			out = append(out, v)
		}
	}
	return out
}

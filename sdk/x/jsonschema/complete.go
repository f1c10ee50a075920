package jsonschema

import "slices"

// Complete fills in what is missing in parameters: a member that is null although its schema
// does not allow null counts as absent, and an absent member gets its default, also in nested
// objects and lists. Defaults that do not match their own schema, and those below allOf,
// anyOf and similar keywords, are not used. v does not change. The result shares unchanged
// parts with v, and the defaults with the schema: it must not be changed. If changed is
// false, it is v itself.
func (s *Schema) Complete(v any) (completed any, changed bool) { return s.root.complete(v) }

// Fit completes v and returns the violations in the result; see [Schema.Complete] and
// [Schema.ValidateTemplated]. If only the defaults violate the schema, for example
// because they exclude each other, the result is v.
func (s *Schema) Fit(v any, isTemplate func(path string) bool) (fitted any, changed bool, problems []Problem) {
	fitted, changed = s.Complete(v)
	problems = s.run(fitted, isTemplate)
	if changed && len(problems) > 0 && len(s.run(v, isTemplate)) == 0 {
		return v, false, nil
	}
	return fitted, changed, problems
}

func (n *node) complete(v any) (out any, changed bool) {
	for n.ref != nil && n.object == nil && n.array == nil {
		n = n.ref
	}
	switch v := v.(type) {
	case map[string]any:
		if n.object != nil {
			return n.object.complete(v)
		}
	case []any:
		if n.array != nil {
			return n.array.complete(v)
		}
	}
	return v, false
}

// refusesNull reports whether a schema restricts the allowed values and excludes null.
func (n *node) refusesNull() bool {
	refuse := func(alternatives []*node) bool {
		return len(alternatives) > 0 && !slices.ContainsFunc(alternatives, func(n *node) bool { return !n.refusesNull() })
	}
	switch {
	case n.types != nil:
		return !slices.Contains(n.types, "null")
	case n.enum != nil:
		return !n.enum.keys["null"]
	case n.ref != nil:
		return n.ref.refusesNull()
	}
	return n.logic != nil && (refuse(n.logic.anyOf) || refuse(n.logic.oneOf))
}

func (rules *objectRules) complete(v map[string]any) (any, bool) {
	var out map[string]any // nil until something changes
	write := func() map[string]any {
		if out == nil {
			out = make(map[string]any, len(v)+len(rules.fallbacks))
			for name, member := range v {
				out[name] = member
			}
		}
		return out
	}
	for name, member := range v {
		rule := rules.properties[name]
		if rule == nil {
			rule = rules.additional
		}
		if rule == nil {
			continue
		}
		if member == nil && rule.refusesNull() {
			delete(write(), name)
		} else if completed, changed := rule.complete(member); changed {
			write()[name] = completed
		}
	}
	for _, name := range rules.fallbacks {
		given, ok := v[name]
		if rule := rules.properties[name]; !ok || given == nil && rule.refusesNull() {
			write()[name] = rule.fallback
		}
	}
	if out == nil {
		return v, false
	}
	return out, true
}

func (rules *arrayRules) complete(v []any) (any, bool) {
	var out []any
	for i, item := range v {
		rule := rules.rest
		if i < len(rules.prefix) {
			rule = rules.prefix[i]
		}
		if rule == nil {
			break
		}
		if completed, changed := rule.complete(item); changed {
			if out == nil {
				out = slices.Clone(v)
			}
			out[i] = completed
		}
	}
	if out == nil {
		return v, false
	}
	return out, true
}

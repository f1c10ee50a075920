// Package filter selects items by their metadata. [Parse] checks a filter, and [Matches]
// applies it; an [operator.Comparison] is one of its operators.
package filter

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/operator"
)

// Filter is a list of conditions that must all match. The zero value matches
// everything.
type Filter []Condition

// Condition is a condition on the value of one field.
type Condition struct {
	// Field is the name of a member, or a path with dots.
	Field string
	// want is the value, if there are no comparisons.
	want        any
	comparisons []operator.Comparison
}

// Parse checks a filter that was passed in a parameter with the given name. Each member
// names a field. Its value is the required value, a list of alternatives, or an object of
// operators, such as {"gte": 5, "lt": 10}. An object as a required value is written
// {"eq": {...}}. The error is a validation_error.
func Parse(name string, wanted map[string]any) (Filter, error) {
	model, err := value.From(wanted)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "%s: %w", name, err)
	}
	fields, _ := model.(map[string]any)
	var f Filter
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		c := Condition{Field: field, want: fields[field]}
		if err := c.parse(); err != nil {
			return nil, tea.Errorf(tea.ValidationError, "%s: %w", name, err)
		}
		f = append(f, c)
	}
	return f, nil
}

// parse sets the comparisons. It rejects objects that look like a value or an operator of
// another language, because they would select nothing.
func (c *Condition) parse() error {
	switch c.Field {
	case "$and", "$or", "$nor", "$not":
		return fmt.Errorf("%s is not an operator: all fields must match, and a list means any of its values", c.Field)
	}
	choices, _ := c.want.([]any)
	if slices.ContainsFunc(choices, func(choice any) bool { _, ok := choice.(map[string]any); return ok }) {
		return fmt.Errorf("field %q: a list of values has an object; use {\"in\": [...]} to compare with objects", c.Field)
	}
	object, ok := c.want.(map[string]any)
	if ok && len(object) == 0 {
		return fmt.Errorf("field %q: an object without operators; use {\"eq\": {}} to compare with an empty one", c.Field)
	}
	for _, op := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(operator.Names(), op) {
			return fmt.Errorf("field %q: unknown operator %q; use %s", c.Field, op, instead(c.Field, op))
		}
		comparison, err := operator.New(op, object[op])
		if err != nil {
			return fmt.Errorf("field %q: %w", c.Field, err)
		}
		c.comparisons = append(c.comparisons, comparison)
	}
	return nil
}

// instead returns what to write for an unknown operator: the equivalent of an operator of
// another language, such as $gt or >=, or the list of operators.
func instead(field, foreign string) string {
	switch foreign {
	case "=", "==":
		return "eq"
	case "!=", "<>":
		return "ne"
	case ">":
		return "gt"
	case ">=":
		return "gte"
	case "<":
		return "lt"
	case "<=":
		return "lte"
	case "$nin":
		return "not_in"
	}
	if op := strings.TrimPrefix(foreign, "$"); op != foreign && slices.Contains(operator.Names(), op) {
		return op
	}
	return fmt.Sprintf("one of %s, or the field %q for a member of an object, or eq to compare with one", strings.Join(operator.Names(), ", "), field+"."+foreign)
}

// Matches reports whether metadata, the JSON text of an object, matches the filter.
func Matches(metadata []byte, f Filter) bool {
	if len(f) == 0 {
		return true
	}
	var object map[string]any
	if len(metadata) > 0 {
		decoded, err := value.Decode(metadata)
		if err != nil {
			return false
		}
		object, _ = decoded.(map[string]any)
	}
	return f.MatchesObject(object)
}

// MatchesObject reports whether metadata in the value model matches the filter.
func (f Filter) MatchesObject(metadata map[string]any) bool {
	for _, c := range f {
		if !c.Holds(Lookup(metadata, c.Field)) {
			return false
		}
	}
	return true
}

// Lookup finds a member by its name or by a path with dots.
func Lookup(object map[string]any, field string) (v any, found bool) {
	if v, ok := object[field]; ok {
		return v, true
	}
	name, rest, dotted := strings.Cut(field, ".")
	inner, ok := object[name].(map[string]any)
	if !dotted || !ok {
		return nil, false
	}
	return Lookup(inner, rest)
}

// Holds reports whether the field's value satisfies the condition.
func (c Condition) Holds(v any, found bool) bool {
	if c.comparisons == nil {
		return found && matchesValue(v, c.want)
	}
	for _, comparison := range c.comparisons {
		if !comparison.Holds(v, found) {
			return false
		}
	}
	return true
}

// Value returns the required value or the list of alternatives; ok is false for a condition
// with operators.
func (c Condition) Value() (want any, ok bool) { return c.want, c.comparisons == nil }

// matchesValue compares a value with the required one: a required list means any of its values, and
// a list matches if one of its items does.
func matchesValue(have, want any) bool {
	if value.Equal(have, want) {
		return true
	}
	if choices, ok := want.([]any); ok {
		return slices.ContainsFunc(choices, func(choice any) bool { return matchesValue(have, choice) })
	}
	items, ok := have.([]any)
	return ok && contains(items, want)
}

func contains(list []any, v any) bool {
	return slices.ContainsFunc(list, func(e any) bool { return value.Equal(e, v) })
}

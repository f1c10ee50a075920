package dataactions

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/diag"
	"github.com/the-edge-agent/tea/sdk/value"
)

// condition is one {field, op, value}.
//
// A missing field fails every op except ne, not_in and exists: false. The ops
// gt, gte, lt and lte compare only two numbers or two strings.
type condition struct {
	field []step
	op    string
	value any
}

func ops() []string {
	return []string{"eq", "ne", "gt", "gte", "lt", "lte", "in", "not_in", "contains", "startswith", "endswith", "exists"}
}

// conditionsOf parses a predicate: one object or a list of them.
func conditionsOf(predicate any) ([]condition, error) {
	list, isList := predicate.([]any)
	if !isList {
		list = []any{predicate}
	}
	conditions := make([]condition, len(list))
	for i, e := range list {
		var err error
		if conditions[i], err = conditionOf(e); err != nil {
			if isList {
				return nil, tea.Errorf(tea.ValidationError, "data.filter: predicate[%d]: %w", i, err)
			}
			return nil, tea.Errorf(tea.ValidationError, "data.filter: predicate: %w", err)
		}
	}
	return conditions, nil
}

func conditionOf(v any) (condition, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return condition{}, errors.New("expected {field, op, value}, got " + value.TypeName(v))
	}
	members := []string{"field", "op", "value"}
	for name := range m {
		if !slices.Contains(members, name) {
			return condition{}, withHint("unknown member "+name, diag.Suggest(name, members))
		}
	}
	field, isText := m["field"].(string)
	if _, given := m["field"]; given && !isText {
		return condition{}, errors.New("field must be a string")
	}
	c := condition{value: m["value"]}
	c.op, _ = m["op"].(string)
	if !slices.Contains(ops(), c.op) {
		return condition{}, withHint("op must be one of "+strings.Join(ops(), ", "), diag.Suggest(c.op, ops()))
	}
	if _, given := m["value"]; !given && c.op != "exists" {
		return condition{}, errors.New("op " + c.op + " needs a value")
	}
	var err error
	if c.field, err = pathOf(field); err != nil {
		return condition{}, err
	}
	return c, c.checkValue(m)
}

// checkValue reports values that an op does not support.
func (c condition) checkValue(m map[string]any) error {
	_, isList := c.value.([]any)
	_, isText := c.value.(string)
	switch c.op {
	case "in", "not_in":
		if !isList {
			return errors.New("op " + c.op + " needs a list as value")
		}
	case "startswith", "endswith":
		if !isText {
			return errors.New("op " + c.op + " needs a string as value")
		}
	case "exists":
		if _, isBool := c.value.(bool); m["value"] != nil && !isBool {
			return errors.New("op exists needs true or false as value")
		}
	}
	return nil
}

func withHint(message, hint string) error {
	if hint != "" {
		message += "; " + hint
	}
	return errors.New(message)
}

func holdsAll(conditions []condition, item any) bool {
	for _, c := range conditions {
		if !c.holds(item) {
			return false
		}
	}
	return true
}

func (c condition) holds(item any) bool {
	got, found := lookUp(c.field, item)
	if c.op == "exists" {
		return found == (c.value != false)
	}
	if !found {
		return c.op == "ne" || c.op == "not_in"
	}
	switch c.op {
	case "eq":
		return value.Equal(got, c.value)
	case "ne":
		return !value.Equal(got, c.value)
	case "in":
		return contains(c.value.([]any), got)
	case "not_in":
		return !contains(c.value.([]any), got)
	case "contains":
		return c.contained(got)
	case "startswith":
		s, ok := got.(string)
		return ok && strings.HasPrefix(s, c.value.(string))
	case "endswith":
		s, ok := got.(string)
		return ok && strings.HasSuffix(s, c.value.(string))
	}
	order, ok := compare(got, c.value)
	if !ok {
		return false
	}
	switch c.op {
	case "gt":
		return order > 0
	case "gte":
		return order >= 0
	case "lt":
		return order < 0
	default:
		return order <= 0
	}
}

func contains(list []any, v any) bool {
	return slices.ContainsFunc(list, func(e any) bool { return value.Equal(e, v) })
}

// contained reports whether got contains the value: as a part of a string, an
// item of a list, or the name of an object's member.
func (c condition) contained(got any) bool {
	switch got := got.(type) {
	case []any:
		return contains(got, c.value)
	case string:
		part, ok := c.value.(string)
		return ok && strings.Contains(got, part)
	case map[string]any:
		name, ok := c.value.(string)
		_, has := got[name]
		return ok && has
	}
	return false
}

// compare orders two numbers or two strings; ok is false for other values.
func compare(a, b any) (order int, ok bool) {
	if s, isText := a.(string); isText {
		t, ok := b.(string)
		return cmp.Compare(s, t), ok
	}
	return value.Compare(a, b)
}

package dataactions

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
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
	order, ok := value.Order(got, c.value)
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

// step is one part of a field's path: a member's name or an item's index.
type step struct {
	name  string
	index int
	isIdx bool
}

// pathOf parses a path such as a.b[0].c; a negative index counts from the end.
func pathOf(text string) ([]step, error) {
	var steps []step
	for rest := text; rest != ""; {
		if strings.HasPrefix(rest, "[") {
			inside, after, ok := strings.Cut(rest[1:], "]")
			i, err := strconv.Atoi(inside)
			if !ok || err != nil {
				return nil, fmt.Errorf("field %q: expected a number in the brackets, as in items[0]", text)
			}
			steps = append(steps, step{index: i, isIdx: true})
			rest = after
			if rest != "" && rest[0] != '.' && rest[0] != '[' {
				return nil, fmt.Errorf("field %q: expected . or [ after a bracket", text)
			}
			continue
		}
		if len(steps) > 0 {
			rest = strings.TrimPrefix(rest, ".")
		}
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		if end == 0 {
			return nil, fmt.Errorf("field %q: a name is missing", text)
		}
		steps = append(steps, step{name: rest[:end]})
		rest = rest[end:]
		if rest == "." {
			return nil, fmt.Errorf("field %q: a name is missing", text)
		}
	}
	return steps, nil
}

// lookUp follows a path; found is false if it does not exist.
func lookUp(path []step, v any) (found any, ok bool) {
	for _, s := range path {
		if !s.isIdx {
			object, _ := v.(map[string]any)
			if v, ok = object[s.name]; !ok {
				return nil, false
			}
			continue
		}
		list, _ := v.([]any)
		i := s.index
		if i < 0 {
			i += len(list)
		}
		if i < 0 || i >= len(list) {
			return nil, false
		}
		v = list[i]
	}
	return v, true
}

package dataactions

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/diag"
	"github.com/the-edge-agent/tea/sdk/x/operator"
)

// condition is one {field, op, value}.
//
// A missing field fails every op except ne, not_in and exists: false. The ops
// gt, gte, lt and lte compare only two numbers or two strings.
type condition struct {
	field []step
	operator.Comparison
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
	op, _ := m["op"].(string)
	if ops := operator.Names(); !slices.Contains(ops, op) {
		return condition{}, withHint("op must be one of "+strings.Join(ops, ", "), diag.Suggest(op, ops))
	}
	if _, given := m["value"]; !given && op != "exists" {
		return condition{}, errors.New("op " + op + " needs a value")
	}
	path, err := pathOf(field)
	if err != nil {
		return condition{}, err
	}
	comparison, err := operator.New(op, m["value"])
	return condition{path, comparison}, err
}

func withHint(message, hint string) error {
	if hint != "" {
		message += "; " + hint
	}
	return errors.New(message)
}

func holdsAll(conditions []condition, item any) bool {
	for _, c := range conditions {
		if !c.Holds(lookUp(c.field, item)) {
			return false
		}
	}
	return true
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

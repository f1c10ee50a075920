package expr

import (
	"cmp"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/python"
	"github.com/the-edge-agent/tea/sdk/value"
)

// compare applies a comparison operator.
func compare(op string, left, right any) bool {
	switch op {
	case "==":
		return equal(left, right)
	case "!=":
		return !equal(left, right)
	case "in":
		return contains(right, left)
	case "not in":
		return !contains(right, left)
	}
	order, ok := order(left, right)
	if !ok {
		hint := ""
		if isNull(left) || isNull(right) {
			hint = nullHint
		}
		panic(failf("cannot compare %s %s %s", typeName(left), op, typeName(right)).hinted(hint))
	}
	switch op {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

// equal is [value.Equal] for the values inside a template: undefined equals
// null, and a boolean equals 0 or 1.
func equal(a, b any) bool {
	if order, ok := value.Compare(python.Number(a), python.Number(b)); ok {
		return order == 0
	}
	return value.Equal(plainValue(a), plainValue(b))
}

func plainValue(v any) any {
	switch v := v.(type) {
	case undefinedType:
		return nil
	case *pair:
		return v.list()
	case *namespace:
		return v.values
	}
	return v
}

// order compares numbers, strings and lists; a boolean is 0 or 1. Other values
// have no order.
func order(a, b any) (sign int, ok bool) {
	if sign, ok = value.Compare(python.Number(a), python.Number(b)); ok {
		return sign, true
	}
	switch a := plainValue(a).(type) {
	case string:
		if b, ok := b.(string); ok {
			return strings.Compare(a, b), true
		}
	case []any:
		b, ok := plainValue(b).([]any)
		if !ok {
			return 0, false
		}
		for i := range min(len(a), len(b)) {
			if !equal(a[i], b[i]) {
				return order(a[i], b[i])
			}
		}
		return cmp.Compare(len(a), len(b)), true
	}
	return 0, false
}

// contains evaluates `item in container`.
func contains(container, item any) bool {
	switch c := plainValue(container).(type) {
	case nil:
		return false
	case string:
		if isNull(item) {
			return false
		}
		s, ok := item.(string)
		if !ok {
			panic(failf("only a string can be in a string, not %s", typeName(item)))
		}
		return strings.Contains(c, s)
	case []any:
		for _, e := range c {
			if equal(e, item) {
				return true
			}
		}
		return false
	case map[string]any:
		if !isKey(item) {
			return false
		}
		_, found := c[textOf(item)]
		return found
	}
	panic(failf("%s has no elements to search", typeName(container)))
}

package expr

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/python"
	"github.com/the-edge-agent/tea/sdk/value"
)

// compare applies a comparison operator.
func compare(op string, left, right any) (bool, error) {
	switch op {
	case "==":
		return equal(left, right), nil
	case "!=":
		return !equal(left, right), nil
	case "in":
		return contains(right, left)
	case "not in":
		found, err := contains(right, left)
		return !found, err
	}
	order, err := order(left, right)
	if err != nil {
		message := fmt.Sprintf("cannot compare %s %s %s", typeName(left), op, typeName(right))
		if isNull(left) || isNull(right) {
			return false, &hintedError{message, "set a default for values that can be missing: x | default(0)"}
		}
		return false, errors.New(message)
	}
	switch op {
	case "<":
		return order < 0, nil
	case "<=":
		return order <= 0, nil
	case ">":
		return order > 0, nil
	}
	return order >= 0, nil
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

var errNoOrder = errors.New("the values have no order")

// order compares numbers, strings and lists; a boolean is 0 or 1.
func order(a, b any) (int, error) {
	if order, ok := value.Compare(python.Number(a), python.Number(b)); ok {
		return order, nil
	}
	switch a := plainValue(a).(type) {
	case string:
		if b, ok := b.(string); ok {
			return strings.Compare(a, b), nil
		}
	case []any:
		b, ok := plainValue(b).([]any)
		if !ok {
			return 0, errNoOrder
		}
		for i := range min(len(a), len(b)) {
			if equal(a[i], b[i]) {
				continue
			}
			return order(a[i], b[i])
		}
		return cmp.Compare(len(a), len(b)), nil
	}
	return 0, errNoOrder
}

// contains evaluates `item in container`.
func contains(container, item any) (bool, error) {
	switch c := plainValue(container).(type) {
	case nil:
		return false, nil
	case string:
		if isNull(item) {
			return false, nil
		}
		s, ok := item.(string)
		if !ok {
			return false, fmt.Errorf("only a string can be in a string, not %s", typeName(item))
		}
		return strings.Contains(c, s), nil
	case []any:
		for _, e := range c {
			if equal(e, item) {
				return true, nil
			}
		}
		return false, nil
	case map[string]any:
		key, err := keyText(item)
		_, found := c[key]
		return err == nil && found, nil
	}
	return false, fmt.Errorf("%s has no elements to search", typeName(container))
}

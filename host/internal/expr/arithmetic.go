package expr

import (
	"errors"
	"fmt"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/python"
)

var errListRepeat = fmt.Errorf("the list would have more than %d elements", maxElements)

// operate applies an arithmetic operator by Python's rules.
func operate(op string, left, right any) (any, error) {
	switch op {
	case "~":
		return join(left, right)
	case "%":
		if format, ok := left.(string); ok {
			return formatText(format, right)
		}
	case "+":
		if v, ok, err := add(left, right); ok {
			return v, err
		}
	case "*":
		if v, ok, err := multiply(left, right); ok {
			return v, err
		}
	}
	if python.IsNumber(left) && python.IsNumber(right) {
		return python.Calculate(op, left, right)
	}
	message := fmt.Sprintf("cannot calculate %s %s %s", typeName(left), op, typeName(right))
	switch {
	case isNull(left) || isNull(right):
		return nil, &hintedError{message, "set a default for values that can be missing: x | default(0)"}
	case op == "+":
		return nil, &hintedError{message, "join texts with ~, or convert with | int, | float or | string"}
	}
	return nil, errors.New(message)
}

func join(left, right any) (any, error) {
	a, err := textOf(left)
	if err != nil {
		return nil, err
	}
	b, err := textOf(right)
	if err != nil {
		return nil, err
	}
	if len(a)+len(b) > maxText {
		return nil, ErrTooLong
	}
	return a + b, nil
}

// add joins strings and lists.
func add(left, right any) (v any, ok bool, err error) {
	switch a := left.(type) {
	case string:
		if b, ok := right.(string); ok {
			v, err = join(a, b)
			return v, true, err
		}
	case []any:
		if b, ok := right.([]any); ok {
			if len(a)+len(b) > maxElements {
				return nil, true, errListRepeat
			}
			return append(append(make([]any, 0, len(a)+len(b)), a...), b...), true, nil
		}
	}
	return nil, false, nil
}

// multiply repeats strings and lists.
func multiply(left, right any) (v any, ok bool, err error) {
	n, isCount := right.(int64)
	if !isCount {
		if n, isCount = left.(int64); !isCount {
			return nil, false, nil
		}
		left = right
	}
	switch a := left.(type) {
	case string:
		v, err = repeat(a, n)
		return v, true, err
	case []any:
		if n = max(n, 0); len(a) > 0 && n > maxElements/int64(len(a)) {
			return nil, true, errListRepeat
		}
		out := make([]any, 0, len(a)*int(n))
		for range n {
			out = append(out, a...)
		}
		return out, true, measuredParts(out)
	}
	return nil, false, nil
}

// repeat returns s n times; it fails before it allocates if that is too long.
func repeat(s string, n int64) (string, error) {
	if n <= 0 || s == "" {
		return "", nil
	}
	if n > int64(maxText/len(s)) {
		return "", ErrTooLong
	}
	return strings.Repeat(s, int(n)), nil
}

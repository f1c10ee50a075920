package expr

import (
	"strings"

	"github.com/the-edge-agent/tea/host/internal/python"
)

// operate applies an arithmetic operator by Python's rules.
func operate(op string, left, right any) any {
	switch op {
	case "~":
		return join(textOf(left), textOf(right))
	case "%":
		if format, ok := left.(string); ok {
			return formatText(format, right)
		}
	case "+":
		if v := add(left, right); v != nil {
			return v
		}
	case "*":
		if v := multiply(left, right); v != nil {
			return v
		}
	}
	if python.IsNumber(left) && python.IsNumber(right) {
		return must(python.Calculate(op, left, right))
	}
	hint := ""
	switch {
	case isNull(left) || isNull(right):
		hint = nullHint
	case op == "+":
		hint = "join texts with ~, or convert with | int, | float or | string"
	}
	panic(failf("cannot calculate %s %s %s", typeName(left), op, typeName(right)).hinted(hint))
}

// nullHint is the hint for an operator that got null.
const nullHint = "set a default for values that can be missing: x | default(0)"

func join(a, b string) string {
	checkText(len(a) + len(b))
	return a + b
}

// add joins strings and lists; nil for other values.
func add(left, right any) any {
	switch a := left.(type) {
	case string:
		if b, ok := right.(string); ok {
			return join(a, b)
		}
	case []any:
		if b, ok := right.([]any); ok {
			if len(a)+len(b) > maxElements {
				panic(longList())
			}
			return append(append(make([]any, 0, len(a)+len(b)), a...), b...)
		}
	}
	return nil
}

// multiply repeats strings and lists; nil for other values.
func multiply(left, right any) any {
	n, isCount := right.(int64)
	if !isCount {
		if n, isCount = left.(int64); !isCount {
			return nil
		}
		left = right
	}
	switch a := left.(type) {
	case string:
		return repeat(a, n)
	case []any:
		if n = max(n, 0); len(a) > 0 && n > maxElements/int64(len(a)) {
			panic(longList())
		}
		out := make([]any, 0, len(a)*int(n))
		for range n {
			out = append(out, a...)
		}
		measureParts(out)
		return out
	}
	return nil
}

func longList() failure {
	return failf("the list would have more than %d elements", maxElements)
}

// repeat returns s n times; it fails before it allocates if that is too long.
func repeat(s string, n int64) string {
	if n <= 0 || s == "" {
		return ""
	}
	if n > int64(maxText/len(s)) {
		panic(failure{err: ErrTooLong})
	}
	return strings.Repeat(s, int(n))
}

package expr

import (
	"encoding/json"
	"strings"
	"unicode"

	"github.com/the-edge-agent/tea/host/internal/python"
)

// buildTests returns the table of the tests after `is`, by name.
func buildTests() map[string]filter {
	table := map[string]filter{
		"divisibleby": {params: params("num"), required: 1, apply: divisibleTest},
		"in": {params: params("seq"), required: 1, apply: func(a *args) any {
			return contains(a.any(0, nil), a.in)
		}},
		"sameas": {params: params("other"), required: 1, apply: func(a *args) any {
			return typeName(a.in) == typeName(a.any(0, nil)) && equal(a.in, a.any(0, nil))
		}},
		"filter": {apply: knownTest(filters)},
		"test":   {apply: knownTest(tests)},
	}
	for name, holds := range predicates() {
		table[name] = filter{apply: func(a *args) any { return holds(a.in) }}
	}
	for op, names := range map[string]string{"==": "eq equalto", "!=": "ne", "<": "lt lessthan", "<=": "le", ">": "gt greaterthan", ">=": "ge"} {
		test := filter{params: params("other"), required: 1, apply: func(a *args) any {
			return compare(op, a.in, a.any(0, nil))
		}}
		for name := range strings.FieldsSeq(op + " " + names) {
			table[name] = test
		}
	}
	return table
}

// predicates are the tests without an argument.
func predicates() map[string]func(v any) bool {
	return map[string]func(v any) bool{
		"boolean":   func(v any) bool { _, ok := v.(bool); return ok },
		"callable":  func(v any) bool { _, ok := v.(callable); return ok },
		"defined":   func(v any) bool { return v != undefined },
		"undefined": func(v any) bool { return v == undefined },
		"escaped":   func(any) bool { return false },
		"even":      func(v any) bool { return isParity(v, 0) },
		"odd":       func(v any) bool { return isParity(v, 1) },
		"false":     func(v any) bool { return v == false },
		"true":      func(v any) bool { return v == true },
		"float":     func(v any) bool { _, ok := v.(float64); return ok },
		"integer":   isInteger,
		"iterable":  func(v any) bool { _, err := elements(v); return err == nil },
		"lower":     func(v any) bool { return isCased(v, unicode.IsLower, unicode.IsUpper) },
		"upper":     func(v any) bool { return isCased(v, unicode.IsUpper, unicode.IsLower) },
		"mapping":   func(v any) bool { _, ok := plainValue(v).(map[string]any); return ok },
		"none":      isNull,
		"number":    python.IsNumber,
		"sequence":  isSequence,
		"string":    func(v any) bool { _, ok := v.(string); return ok },
	}
}

func isSequence(v any) bool {
	switch plainValue(v).(type) {
	case string, []any, map[string]any:
		return true
	}
	return false
}

func isInteger(v any) bool {
	switch v.(type) {
	case int64, json.Number:
		return true
	}
	return false
}

func isParity(v any, rest int64) bool {
	if !python.IsNumber(v) {
		return false
	}
	return equal(must(python.Calculate("%", v, int64(2))), rest)
}

// isCased reports whether a text has letters of one case and none of the other.
func isCased(v any, has, hasNot func(rune) bool) bool {
	s, _ := v.(string)
	return strings.ContainsFunc(s, has) && !strings.ContainsFunc(s, hasNot)
}

func divisibleTest(a *args) any {
	if !python.IsNumber(a.in) || !python.IsNumber(a.list[0]) {
		panic(failf("divisibleby needs numbers, not %s and %s", typeName(a.in), typeName(a.list[0])))
	}
	return equal(must(python.Calculate("%", a.in, a.list[0])), int64(0))
}

func knownTest(table func() map[string]filter) func(a *args) any {
	return func(a *args) any {
		name, ok := a.in.(string)
		_, known := table()[name]
		return ok && known
	}
}

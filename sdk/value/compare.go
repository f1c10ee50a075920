package value

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"
)

// Truthy reports whether a value counts as true in a condition: everything except nil,
// false, 0, "", an empty list and an empty object.
func Truthy(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case json.Number:
		f, err := strconv.ParseFloat(string(v), 64)
		return err != nil || f != 0
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

// Equal compares two values in the model deeply. Numbers are compared by value without
// rounding, whatever their Go type: 3 equals 3.0, and 2^53+1 does not equal the float
// 2^53.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !Equal(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, av := range a {
			bv, ok := b[k]
			if !ok || !Equal(av, bv) {
				return false
			}
		}
		return true
	case int64, float64, json.Number:
		order, ok := Compare(a, b)
		return ok && order == 0
	}
	switch b.(type) {
	case []any, map[string]any:
		return false
	}
	return a == b
}

// TypeName returns the JSON name of a value's type: null, boolean, integer,
// number, string, array or object.
func TypeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case int64, json.Number:
		return "integer"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "unknown"
}

// Order compares two numbers, as [Compare] does, or two strings; ok is false for
// other values.
func Order(a, b any) (order int, ok bool) {
	if s, isText := a.(string); isText {
		t, ok := b.(string)
		return strings.Compare(s, t), ok
	}
	return Compare(a, b)
}

// Merge returns the members of both objects. Objects with the same name are merged too;
// otherwise the member of over replaces the member of under. It changes neither, and the
// result shares parts of them.
func Merge(under, over map[string]any) map[string]any {
	merged := make(map[string]any, len(under)+len(over))
	maps.Copy(merged, under)
	for name, v := range over {
		below, isObject := merged[name].(map[string]any)
		if above, alsoObject := v.(map[string]any); isObject && alsoObject {
			v = Merge(below, above)
		}
		merged[name] = v
	}
	return merged
}

// Size counts the values in v, including v itself.
func Size(v any) int {
	size := 1
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			size += Size(e)
		}
	case map[string]any:
		for _, e := range v {
			size += Size(e)
		}
	}
	return size
}

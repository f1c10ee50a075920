package expr

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/the-edge-agent/tea/sdk/value"
)

// ErrTooLong is the cause of an error of a template whose text is too long.
var ErrTooLong = fmt.Errorf("the text is longer than %d MiB", maxText>>20)

// checkText fails if a text of n bytes is too long.
func checkText(n int) {
	if n > maxText {
		panic(failure{err: ErrTooLong})
	}
}

// textOf converts a value to text: a string unchanged, null empty, numbers and
// booleans as in JSON, lists and objects as compact JSON.
func textOf(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	var buf [64]byte
	return string(appendText(buf[:0], v))
}

// appendText appends a value as text; see [textOf].
func appendText(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil, undefinedType:
	case string:
		dst = append(dst, v...)
	default:
		dst = appendJSON(dst, v)
	}
	checkText(len(dst))
	return dst
}

// appendJSON is [value.Append] for the values inside a template, and fails if
// the text gets too long.
func appendJSON(dst []byte, v any) []byte {
	checkText(len(dst))
	switch v := v.(type) {
	case undefinedType:
		return append(dst, "null"...)
	case callable, *cycler:
		panic(failf("a %s has no text", typeName(v)))
	case *pair:
		return appendJSON(dst, v.list())
	case *namespace:
		return appendJSON(dst, v.values)
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, e)
		}
		return append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		for i, k := range keys(v) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(value.AppendString(dst, k), ':')
			dst = appendJSON(dst, v[k])
		}
		return append(dst, '}')
	default:
		return must(value.Append(dst, v))
	}
}

// appendIndented is appendJSON with line breaks. margin is the indentation.
func appendIndented(dst []byte, v any, margin, indent string) []byte {
	inner := margin + indent
	switch v := v.(type) {
	case *pair:
		return appendIndented(dst, v.list(), margin, indent)
	case *namespace:
		return appendIndented(dst, v.values, margin, indent)
	case []any:
		if len(v) == 0 {
			return append(dst, "[]"...)
		}
		dst = append(dst, '[')
		for i, e := range v {
			dst = appendLine(dst, i, inner)
			dst = appendIndented(dst, e, inner, indent)
		}
		return append(append(append(dst, '\n'), margin...), ']')
	case map[string]any:
		if len(v) == 0 {
			return append(dst, "{}"...)
		}
		dst = append(dst, '{')
		for i, k := range keys(v) {
			dst = append(value.AppendString(appendLine(dst, i, inner), k), ": "...)
			dst = appendIndented(dst, v[k], inner, indent)
		}
		return append(append(append(dst, '\n'), margin...), '}')
	}
	return appendJSON(dst, v)
}

func appendLine(dst []byte, i int, margin string) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	return append(append(dst, '\n'), margin...)
}

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// typeName is [value.TypeName] for the values inside a template.
func typeName(v any) string {
	switch v.(type) {
	case undefinedType:
		return "null"
	case json.Number:
		return "integer"
	case *pair:
		return "array"
	case *namespace:
		return "namespace"
	case *macro:
		return "macro"
	case *loop:
		return "loop"
	case *joiner:
		return "joiner"
	case *cycler:
		return "cycler"
	}
	return value.TypeName(v)
}

package expr

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/the-edge-agent/tea/sdk/value"
)

// ErrTooLong is the cause of the error of a template whose text is too long.
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
func appendJSON(dst []byte, v any) []byte { return appendTree(dst, v, nil) }

// indentation is the indentation of a line; nil means JSON on one line.
type indentation struct{ margin, step string }

func (in *indentation) deeper() *indentation {
	if in == nil {
		return nil
	}
	return &indentation{in.margin + in.step, in.step}
}

func (in *indentation) breakLine(dst []byte) []byte {
	if in == nil {
		return dst
	}
	return append(append(dst, '\n'), in.margin...)
}

func appendTree(dst []byte, v any, in *indentation) []byte {
	checkText(len(dst))
	switch v := v.(type) {
	case undefinedType:
		return append(dst, "null"...)
	case callable, *cycler:
		panic(failf("a %s has no text", typeName(v)))
	case *pair:
		return appendTree(dst, v.list(), in)
	case *namespace:
		return appendTree(dst, v.values, in)
	case []any:
		if len(v) == 0 {
			return append(dst, "[]"...)
		}
		inner, before := in.deeper(), byte('[')
		for _, e := range v {
			dst = appendTree(inner.breakLine(append(dst, before)), e, inner)
			before = ','
		}
		return append(in.breakLine(dst), ']')
	case map[string]any:
		if len(v) == 0 {
			return append(dst, "{}"...)
		}
		inner, before := in.deeper(), byte('{')
		for _, k := range keys(v) {
			dst = append(value.AppendString(inner.breakLine(append(dst, before)), k), ':')
			if before = ','; in != nil {
				dst = append(dst, ' ')
			}
			dst = appendTree(dst, v[k], inner)
		}
		return append(in.breakLine(dst), '}')
	}
	return must(value.Append(dst, v))
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

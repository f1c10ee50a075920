package expr

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// undefinedType is the type of the result of a failed look-up. It is null
// except in the tests `is defined` and `is undefined`, and it never leaves the
// package.
type undefinedType struct{}

var undefined any = undefinedType{}

func isNull(v any) bool { return v == nil || v == undefined }

// known converts undefined to null.
func known(v any) any {
	if v == undefined {
		return nil
	}
	return v
}

// lookup finds the path in a scope, without a template's own names. With bare
// names, a name that is not a root is a key of the state.
func (n *path) lookup(s Scope, bare bool) any {
	if len(n.steps) > 0 && n.steps[0].isKey {
		if finder, ok := s.(FieldFinder); ok {
			if v, ok := finder.Field(n.root, n.steps[0].key); ok {
				return walk(v, n.steps[1:])
			}
		}
	}
	v, ok := s.Lookup(n.root)
	if ok {
		return walk(v, n.steps)
	}
	if bare {
		state, _ := s.Lookup("state")
		return walk(field(state, n.root), n.steps)
	}
	return undefined
}

func walk(v any, steps []step) any {
	for i := range steps {
		if steps[i].isKey {
			v = field(v, steps[i].key)
		} else {
			v = element(v, steps[i].index)
		}
	}
	return v
}

// fielder is a value inside a template (a loop, a namespace, a group) with
// readable fields.
type fielder interface {
	field(name string) any
}

// field returns v.name.
func field(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		if e, ok := v[name]; ok {
			return e
		}
	case fielder:
		return v.field(name)
	}
	return undefined
}

// element returns v[i]; a negative index counts from the end. For an object the
// key is the number as text, because {0: "low"} is {"0": "low"} in JSON.
func element(v any, i int) any {
	switch v := v.(type) {
	case map[string]any:
		return field(v, strconv.Itoa(i))
	case []any:
		if i < 0 {
			i += len(v)
		}
		if i >= 0 && i < len(v) {
			return v[i]
		}
	case string:
		return character(v, i)
	case *pair:
		return element(v.list(), i)
	}
	return undefined
}

func character(s string, i int) any {
	if i < 0 {
		i += utf8.RuneCountInString(s)
	}
	if i < 0 {
		return undefined
	}
	for _, r := range s {
		if i == 0 {
			return string(r)
		}
		i--
	}
	return undefined
}

// at returns v[key] with a computed key.
func at(v, key any) any {
	switch key := key.(type) {
	case string:
		return field(v, key)
	case int64:
		return element(v, clamp(key))
	case float64:
		if i := int64(key); float64(i) == key {
			return element(v, clamp(i))
		}
	case bool:
		return field(v, strconv.FormatBool(key))
	}
	return undefined
}

// clamp converts an integer to an int, which has 32 bits on some devices.
func clamp(i int64) int { return int(min(max(i, math.MinInt), math.MaxInt)) }

package state

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/sdk/value"
)

// ReduceError reports an update that a key's reducer does not support.
type ReduceError struct {
	Key     string
	Reducer spec.Reducer
	Reason  string
}

// Error names key, reducer and reason.
func (e *ReduceError) Error() string {
	return fmt.Sprintf("state key %q: reducer %s: %s", e.Key, e.Reducer, e.Reason)
}

// Reduce returns the value of key after an update. old is the current value, nil if
// there is none. Neither argument is changed.
//
//	append  adds the update as the last element of the list
//	extend  adds the update's elements at the end of the list
//	merge   merges objects deeply; the update takes precedence
//	add     adds numbers, joins strings and lists
//	union   is extend without elements that the list already has
//	max min is the greater or smaller of two numbers or strings
func Reduce(r spec.Reducer, key string, old, update any) (any, error) {
	fail := func(format string, args ...any) (any, error) {
		return nil, &ReduceError{Key: key, Reducer: r, Reason: fmt.Sprintf(format, args...)}
	}
	switch r {
	case spec.ReduceReplace:
		return update, nil
	case spec.ReduceAppend, spec.ReduceExtend, spec.ReduceUnion:
		list, ok := old.([]any)
		if !ok && old != nil {
			return fail("the state has %s, not a list", describe(old))
		}
		more := []any{update}
		if r != spec.ReduceAppend {
			if update == nil {
				return old, nil
			}
			if more, ok = update.([]any); !ok {
				return fail("the update must be a list, got %s", describe(update))
			}
		}
		if r == spec.ReduceUnion {
			return union(list, more), nil
		}
		return join(list, more), nil
	case spec.ReduceMerge:
		return mergeObjects(old, update, fail)
	}
	if old == nil {
		return update, nil
	}
	if update == nil {
		return old, nil
	}
	if r == spec.ReduceAdd {
		return add(old, update, fail)
	}
	order, ok := value.Order(old, update)
	if !ok {
		return fail("cannot compare %s with %s", describe(old), describe(update))
	}
	if (r == spec.ReduceMax) == (order < 0) {
		return update, nil
	}
	return old, nil
}

// join copies a, which may be shared with another branch.
func join(a, b []any) []any {
	out := make([]any, 0, len(a)+len(b))
	return append(append(out, a...), b...)
}

func union(a, b []any) []any {
	seen := make(map[string]struct{}, len(a)+len(b))
	out := make([]any, 0, len(a)+len(b))
	for _, list := range [][]any{a, b} {
		for _, e := range list {
			id := value.Key(e)
			if _, ok := seen[id]; !ok {
				seen[id] = struct{}{}
				out = append(out, e)
			}
		}
	}
	return out
}

type failure func(format string, args ...any) (any, error)

func mergeObjects(old, update any, fail failure) (any, error) {
	if update == nil {
		return old, nil
	}
	u, ok := update.(map[string]any)
	if !ok {
		return fail("the update must be an object, got %s", describe(update))
	}
	if old == nil {
		return u, nil
	}
	o, ok := old.(map[string]any)
	if !ok {
		return fail("the state has %s, not an object", describe(old))
	}
	return value.Merge(o, u), nil
}

func add(old, update any, fail failure) (any, error) {
	switch o := old.(type) {
	case string:
		if u, ok := update.(string); ok {
			return o + u, nil
		}
	case []any:
		if u, ok := update.([]any); ok {
			return join(o, u), nil
		}
	case int64, float64, json.Number:
		if a, ok := value.Big(old); ok {
			if b, ok := value.Big(update); ok {
				return value.FromBig(a.Add(a, b)), nil
			}
		}
		a, ok1 := value.Float(old)
		b, ok2 := value.Float(update)
		if !ok1 || !ok2 {
			break
		}
		sum := a + b
		if math.IsInf(sum, 0) {
			return fail("cannot add %s to %s: the sum is not a number that JSON can represent", describe(update), describe(old))
		}
		return sum, nil
	}
	return fail("cannot add %s to %s", describe(update), describe(old))
}

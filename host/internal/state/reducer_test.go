package state_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/host/internal/state"
	"github.com/the-edge-agent/tea/sdk/value"
)

func TestReduce(t *testing.T) {
	t.Parallel()
	beyond := json.Number("9223372036854775808")
	for _, test := range []struct {
		name        string
		reducer     spec.Reducer
		old, update any
		want        any
		reason      string
	}{
		{"replace", spec.ReduceReplace, int64(1), nil, nil, ""},
		{"append", spec.ReduceAppend, list{int64(1)}, list{int64(2)}, list{int64(1), list{int64(2)}}, ""},
		{"append the first", spec.ReduceAppend, nil, "x", list{"x"}, ""},
		{"append null", spec.ReduceAppend, list{}, nil, list{nil}, ""},
		{"append to text", spec.ReduceAppend, "x", "y", nil, `the state has str ("x"), not a list`},
		{"extend", spec.ReduceExtend, list{int64(1)}, list{int64(1), int64(2)}, list{int64(1), int64(1), int64(2)}, ""},
		{"extend by nothing", spec.ReduceExtend, list{int64(1)}, nil, list{int64(1)}, ""},
		{"extend nothing by nothing", spec.ReduceExtend, nil, nil, nil, ""},
		{"extend by text", spec.ReduceExtend, list{}, "x", nil, `the update must be a list, got str ("x")`},
		{"union", spec.ReduceUnion, list{int64(1), object{"a": int64(1), "b": int64(2)}}, list{"1", object{"b": int64(2), "a": int64(1)}, int64(1), "1"}, list{int64(1), object{"a": int64(1), "b": int64(2)}, "1"}, ""},
		{"union of equal numbers", spec.ReduceUnion, list{int64(1)}, list{1.0, 1.5}, list{int64(1), 1.5}, ""},
		{
			"merge", spec.ReduceMerge,
			object{"a": object{"x": int64(1), "y": int64(1)}, "b": list{int64(1)}},
			object{"a": object{"y": int64(2), "z": object{}}, "b": list{int64(2)}, "c": nil},
			object{"a": object{"x": int64(1), "y": int64(2), "z": object{}}, "b": list{int64(2)}, "c": nil},
			"",
		},
		{"merge an object over text", spec.ReduceMerge, object{"a": "x"}, object{"a": object{"b": int64(1)}}, object{"a": object{"b": int64(1)}}, ""},
		{"merge into nothing", spec.ReduceMerge, nil, object{"a": int64(1)}, object{"a": int64(1)}, ""},
		{"merge a list", spec.ReduceMerge, object{}, list{}, nil, "the update must be an object, got list"},
		{"merge into a list", spec.ReduceMerge, list{}, object{}, nil, "the state has list, not an object"},
		{"add", spec.ReduceAdd, int64(1), int64(2), int64(3), ""},
		{"add beyond int64", spec.ReduceAdd, int64(math.MaxInt64), int64(1), beyond, ""},
		{"add back into int64", spec.ReduceAdd, beyond, int64(-1), int64(math.MaxInt64), ""},
		{"add floats", spec.ReduceAdd, int64(1), 0.5, 1.5, ""},
		{"add to a float", spec.ReduceAdd, 0.5, int64(1), 1.5, ""},
		{"add beyond all floats", spec.ReduceAdd, math.MaxFloat64, math.MaxFloat64, nil, "cannot add float (1.7976931348623157e+308) to float (1.7976931348623157e+308): the sum is not a number that JSON can represent"},
		{"add text", spec.ReduceAdd, "a", "b", "ab", ""},
		{"add lists", spec.ReduceAdd, list{"a"}, list{"b"}, list{"a", "b"}, ""},
		{"add to nothing", spec.ReduceAdd, nil, int64(2), int64(2), ""},
		{"add nothing", spec.ReduceAdd, int64(2), nil, int64(2), ""},
		{"add text to a number", spec.ReduceAdd, int64(2), "x", nil, `cannot add str ("x") to int (2)`},
		{"max", spec.ReduceMax, int64(2), 2.5, 2.5, ""},
		{"max near 2^53", spec.ReduceMax, 9007199254740992.0, int64(9007199254740993), int64(9007199254740993), ""},
		{"min near 2^53", spec.ReduceMin, int64(9007199254740993), 9007199254740992.0, 9007199254740992.0, ""},
		{"union near 2^53", spec.ReduceUnion, list{int64(9007199254740993)}, list{9007199254740992.0, json.Number("9007199254740993")}, list{int64(9007199254740993), 9007199254740992.0}, ""},
		{"union beyond int64", spec.ReduceUnion, list{int64(math.MaxInt64)}, list{9223372036854775808.0, beyond}, list{int64(math.MaxInt64), 9223372036854775808.0}, ""},
		{"max keeps the first of equals", spec.ReduceMax, int64(2), 2.0, int64(2), ""},
		{"max beyond 2^53", spec.ReduceMax, float64(1 << 53), int64(1<<53 + 1), int64(1<<53 + 1), ""},
		{"min", spec.ReduceMin, beyond, int64(7), int64(7), ""},
		{"min of text", spec.ReduceMin, "b", "a", "a", ""},
		{"max of text and number", spec.ReduceMax, "b", int64(1), nil, `cannot compare str ("b") with int (1)`},
		{"max of lists", spec.ReduceMax, list{}, list{}, nil, "cannot compare list with list"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			old, update := value.Clone(test.old), value.Clone(test.update)
			got, err := state.Reduce(test.reducer, "k", test.old, test.update)
			if test.reason != "" {
				var failure *state.ReduceError
				if !errors.As(err, &failure) || failure.Reason != test.reason {
					t.Fatalf("err = %v", err)
				}
				return
			}
			if d := cmp.Diff(test.want, got); err != nil || d != "" {
				t.Errorf("%v (-want +got):\n%s", err, d)
			}
			if !cmp.Equal(old, test.old) || !cmp.Equal(update, test.update) {
				t.Error("an argument was changed")
			}
		})
	}
}

// TestAppendDoesNotShareItsArray is about two branches that append to one list.
func TestAppendDoesNotShareItsArray(t *testing.T) {
	t.Parallel()
	base := append(make(list, 0, 8), int64(0))
	left, _ := state.Reduce(spec.ReduceAppend, "k", base, "left")
	right, _ := state.Reduce(spec.ReduceAppend, "k", base, "right")
	if d := cmp.Diff(list{int64(0), "left"}, left); d != "" {
		t.Error(d, right)
	}
}

// FuzzReduce looks for panics, arguments that are changed and results that
// have no JSON form.
func FuzzReduce(f *testing.F) {
	reducers := []spec.Reducer{spec.ReduceReplace, spec.ReduceAppend, spec.ReduceExtend, spec.ReduceMerge, spec.ReduceAdd, spec.ReduceUnion, spec.ReduceMax, spec.ReduceMin}
	for i, seed := range []string{`1`, `[1,{"a":2}]`, `{"a":{"b":1}}`, `9223372036854775808`, `1.7e308`, `"x"`, `null`, `true`} {
		f.Add(byte(i), []byte(seed), []byte(seed))
	}
	f.Fuzz(func(t *testing.T, which byte, a, b []byte) {
		old, err1 := value.Decode(a)
		update, err2 := value.Decode(b)
		if err1 != nil || err2 != nil {
			return
		}
		oldText, _ := value.Encode(old)
		updateText, _ := value.Encode(update)
		got, err := state.Reduce(reducers[int(which)%len(reducers)], "k", old, update)
		if err == nil {
			if _, err := value.Encode(got); err != nil {
				t.Errorf("the result has no JSON form: %v", err)
			}
		}
		oldAfter, _ := value.Encode(old)
		updateAfter, _ := value.Encode(update)
		if string(oldText) != string(oldAfter) || string(updateText) != string(updateAfter) {
			t.Error("an argument was changed")
		}
	})
}

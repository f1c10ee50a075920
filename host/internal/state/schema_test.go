package state_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/host/internal/state"
)

func TestTypes(t *testing.T) {
	t.Parallel()
	long := json.Number("123456789012345678901234567890")
	for _, test := range []struct {
		kind spec.Type
		v    any
		want any
		got  string // of the error
	}{
		{spec.TypeInt, int64(3), int64(3), ""},
		{spec.TypeInt, 3.0, int64(3), ""},
		{spec.TypeInt, long, long, ""},
		{spec.TypeInt, 9007199254740992.0, int64(9007199254740992), ""},
		{spec.TypeInt, -9223372036854775808.0, int64(math.MinInt64), ""},
		{spec.TypeInt, 9223372036854775808.0, nil, "float (9.223372036854776e+18)"},
		{spec.TypeInt, 3.5, nil, "float (3.5)"},
		{spec.TypeInt, 1e300, nil, "float (1e+300)"},
		{spec.TypeInt, "3", nil, `str ("3")`},
		{spec.TypeInt, true, nil, "bool (true)"},
		{spec.TypeFloat, int64(3), int64(3), ""},
		{spec.TypeFloat, 3.5, 3.5, ""},
		{spec.TypeFloat, "x", nil, `str ("x")`},
		{spec.TypeString, "x", "x", ""},
		{spec.TypeString, strings.Repeat("ö", 50), strings.Repeat("ö", 50), ""},
		{spec.TypeString, list{}, nil, "list"},
		{spec.TypeBool, false, false, ""},
		{spec.TypeBool, int64(0), nil, "int (0)"},
		{spec.TypeBool, "x" + strings.Repeat("ö", 50), nil, `str ("x` + strings.Repeat("ö", 17) + `...)`},
		{spec.TypeList, list{}, list{}, ""},
		{spec.TypeList, object{}, nil, "dict"},
		{spec.TypeDict, object{}, object{}, ""},
		{spec.TypeDict, list{"x"}, nil, "list"},
		{spec.TypeDict, list{}, nil, "an empty list (in Lua {} is one; tea.json.object({}) makes an empty dict)"},
		{spec.TypeAny, object{}, object{}, ""},
		{spec.TypeInt, nil, nil, ""},
	} {
		fitted, err := keys(spec.Key{Name: "k", Type: test.kind}).Convert(object{"k": test.v, "free": "x"})
		if test.got != "" {
			want := `state key "k": expected ` + string(test.kind) + ", got " + test.got
			if err == nil || err.Error() != want {
				t.Errorf("err = %v, want %s", err, want)
			}
			continue
		}
		if d := cmp.Diff(object{"k": test.want, "free": "x"}, fitted); err != nil || d != "" {
			t.Errorf("%s %v: %v\n%s", test.kind, test.v, err, d)
		}
	}
}

func TestInitial(t *testing.T) {
	t.Parallel()
	schema := keys(
		spec.Key{Name: "a", Type: spec.TypeInt, Default: int64(1), HasDefault: true},
		spec.Key{Name: "b", Type: spec.TypeString, Required: true},
		spec.Key{Name: "c", Type: spec.TypeList, Required: true, Default: list{}, HasDefault: true},
		spec.Key{Name: "d", Type: spec.TypeAny},
		spec.Key{Name: "e", Type: spec.TypeAny, HasDefault: true},
	)
	for _, test := range []struct {
		name           string
		schema         *state.Schema
		initial, input object
		want           object
		fault          string
	}{
		{"defaults", schema, nil, object{"b": "x"}, object{"a": int64(1), "b": "x", "c": list{}, "e": nil}, ""},
		{"the input wins", schema, object{"a": int64(2), "b": "i", "f": true}, object{"a": 3.0}, object{"a": int64(3), "b": "i", "c": list{}, "e": nil, "f": true}, ""},
		{"null is a value", schema, object{"a": int64(2)}, object{"a": nil, "b": ""}, object{"a": nil, "b": "", "c": list{}, "e": nil}, ""},
		{
			"all faults", schema,
			object{"a": "x"},
			object{"c": nil},
			nil,
			`state key "a": expected int, got str ("x"); state key "b" is required (str) and missing from the input; state key "c" is required (list) and missing from the input`,
		},
		{"no schema", nil, object{"x": int64(1), "y": int64(1)}, object{"y": int64(2)}, object{"x": int64(1), "y": int64(2)}, ""},
		{"nothing", nil, nil, nil, object{}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := test.schema.Initial(test.initial, test.input)
			if test.fault != "" {
				if err == nil || err.Error() != test.fault {
					t.Errorf("err = %v", err)
				}
				return
			}
			if d := cmp.Diff(test.want, got); err != nil || d != "" {
				t.Errorf("%v\n%s", err, d)
			}
		})
	}
}

func TestRequiredKeyCannotBecomeNull(t *testing.T) {
	t.Parallel()
	schema := keys(spec.Key{Name: "b", Type: spec.TypeString, Required: true})
	err := newState(object{"b": "x"}).Apply(object{"b": nil}, schema)
	if want := `state key "b": expected str, got null`; err == nil || err.Error() != want {
		t.Errorf("err = %v", err)
	}
}

package script_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/script"
	"github.com/the-edge-agent/tea/sdk/value"
)

func TestValuesSurviveARoundTrip(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]any{
		"null":                     nil,
		"bool":                     true,
		"integer":                  int64(-7),
		"fraction":                 2.5,
		"large float":              1e300,
		"string":                   "a\x00ö\u2028",
		"list":                     list{int64(1), "two", false},
		"empty list":               list{},
		"empty object":             object{},
		"empty containers inside":  object{"a": list{}, "b": object{}, "c": list{list{}, object{}}},
		"null in a list":           list{nil, int64(1), nil},
		"null in an object":        object{"a": nil, "b": int64(1)},
		"object of nulls":          object{"a": nil},
		"number-like keys":         object{"1": "a", "2": "b"},
		"2^53":                     int64(1 << 53),
		"2^53+1":                   int64(1<<53 + 1),
		"neighbours beyond 2^53":   list{int64(1 << 53), int64(1<<53 + 1), int64(1<<53 + 2), int64(1<<53 + 3)},
		"nanoseconds":              object{"ts": int64(1731234567890123457)},
		"smallest and largest":     list{int64(-1 << 63), int64(1<<63 - 1)},
		"integer beyond 64 bits":   json.Number("123456789012345678901234567890"),
		"integer beyond all float": json.Number("1" + strings.Repeat("0", 400)),
		"deep":                     object{"a": object{"b": list{object{"c": list{int64(1)}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := script.Env{State: object{"v": v}, Globals: script.Values{"item": v}}
			got := mustEval(t, `
				local moved = {} moved.copy = state.v
				local function same(...) return ... end
				return tea.json.object({copy = moved.copy, list = {same(item) == nil and tea.null or item}})`, env)
			want := object{"list": list{v}}
			if v != nil {
				want["copy"] = v
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(any(object{"v": v}), mustEval(t, `return state`, env)); diff != "" {
				t.Errorf("return state: %s", diff)
			}
			walked := mustEval(t, `for k, v in pairs(state) do end return state`, env)
			if diff := cmp.Diff(any(object{"v": v}), walked); diff != "" {
				t.Errorf("state after pairs: %s", diff)
			}
		})
	}
}

func TestConversion(t *testing.T) {
	t.Parallel()
	state := object{
		"n": nil, "o": object{"gone": nil, "kept": int64(1)}, "list": list{int64(1), nil, int64(3)}, "empty": list{},
		"three": 3.0, "big": int64(1<<53 + 1), "one": object{"only": int64(1)}, "b": int64(2), "a": int64(1),
	}
	for name, tt := range map[string]struct {
		text string
		want any
	}{
		"null is false":             {`return state.n == nil and state.o.gone == nil and not state.n`, true},
		"null in a list":            {`return state.list[2] == tea.null and #state.list == 3`, true},
		"overwritten null":          {`local o = state.o o.gone = 5 return o`, object{"gone": int64(5), "kept": int64(1)}},
		"tea.null":                  {`return {a = tea.null, b = {tea.null}}`, object{"a": nil, "b": list{nil}}},
		"fresh empty table":         {`return {a = {}}`, object{"a": list{}}},
		"fresh empty object":        {`return {a = tea.json.object({}), b = tea.json.object()}`, object{"a": object{}, "b": object{}}},
		"emptied object":            {`local o = state.one o.only = nil return {o = o}`, object{"o": object{}}},
		"emptied list":              {`local l = state.list for i = 1, 3 do table.remove(l) end return {l = l}`, object{"l": list{}}},
		"object turned list":        {`local o = state.one o.only = nil o[1] = "x" return o`, list{"x"}},
		"whole float":               {`return state.three`, int64(3)},
		"division that is whole":    {`return 6 / 2`, int64(3)},
		"negative zero":             {`return -0`, int64(0)},
		"2^62":                      {`return 2^62`, int64(1 << 62)},
		"2^63 fits no integer":      {`return 2^63`, 9223372036854775808.0},
		"arithmetic on a big one":   {`return state.big + 2`, int64(1<<53 + 2)},
		"big one compared":          {`return state.big > 5 and 5 < state.big and state.big == state.big and type(state.big)`, "number"},
		"big one as text":           {`return {tostring(state.big), "n" .. state.big, string.format("%d", state.big), table.concat({state.big})}`, list{"9007199254740993", "n9007199254740993", "9007199254740993", "9007199254740993"}},
		"long whole numbers":        {`return 1731234567890123 .. " " .. 0.1 .. " " .. 1e20`, "1731234567890123 0.1 1e+20"},
		"big one sorted":            {`local l = {state.big, 1} table.sort(l) return l`, list{int64(1), int64(1<<53 + 1)}},
		"big one as json":           {`return tea.json.encode({state.big})`, "[9007199254740993]"},
		"big one from json":         {`return tea.json.decode("[9007199254740993]")`, list{int64(1<<53 + 1)}},
		"json keeps the difference": {`return tea.json.encode(tea.json.decode('{"a":[],"b":{},"c":null,"d":[null]}'))`, `{"a":[],"b":{},"c":null,"d":[null]}`},
		"json null":                 {`return tea.json.decode("null") == tea.null`, true},
		"state walks in key order":  {`local keys = {} for k in pairs(state) do keys[#keys + 1] = k end return table.concat(keys, " ")`, "a b big empty list o one three"},
		"next on state":             {`return (next(state))`, "a"},
		"rawget on state":           {`return rawget(state, "b")`, int64(2)},
		"length of state":           {`return #state`, int64(0)},
		"unpack of a list":          {`return {unpack(state.list, 1, 1)}`, list{int64(1)}},
		"assignment to state":       {`state.a = 9 state.new = 1 return {state.a, state.new}`, list{int64(9), int64(1)}},
		"removal from state":        {`state.a = nil state.one = nil return state.a == nil and state.one == nil and rawget(state, "a") == nil`, true},
		"removal after a read":      {`local l = state.list state.list = nil return state.list == nil`, true},
		"state as result":           {`state.a = 9 state.b = nil state.list = nil return state`, object{"n": nil, "o": state["o"], "empty": list{}, "three": 3.0, "big": int64(1<<53 + 1), "one": state["one"], "a": int64(9)}},
		"same table each time":      {`state.one.only = 2 return state.one.only`, int64(2)},
		"metatables of values":      {`return getmetatable(state.one) == nil and getmetatable(state.list) == nil`, true},
		"a value gets a metatable":  {`local o = setmetatable(state.one, {__index = {x = 7}}) return {o.x, o}`, list{int64(7), object{"only": int64(1)}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, mustEval(t, tt.text, script.Env{State: state})); diff != "" {
				t.Errorf("%s\n%s", tt.text, diff)
			}
		})
	}
}

func TestStateIsNeverChanged(t *testing.T) {
	t.Parallel()
	state := object{"o": object{"l": list{int64(1)}}, "n": int64(1)}
	before := value.Clone(state)
	mustEval(t, `state.o.l[1] = 2 state.o.x = 1 state.n = nil state.new = 1 for k in pairs(state) do state[k] = false end`, script.Env{State: state})
	if diff := cmp.Diff(before, any(state)); diff != "" {
		t.Error(diff)
	}
}

func TestUntouchedKeysAreNotConverted(t *testing.T) {
	t.Parallel()
	// A value that cannot be converted to Lua.
	env := script.Env{State: object{"small": "x", "odd": make(chan int)}, Globals: script.Values{"odd": make(chan int)}}
	if got := mustEval(t, `return state.small`, env); got != "x" {
		t.Errorf("got %v", got)
	}
	if _, err := eval(t, `return state.odd`, env); err == nil || !strings.Contains(err.Error(), "state.odd") {
		t.Errorf("got %v", err)
	}
}

func TestValuesWithoutJSONForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`return {items = {1, 2, print}}`:                           "result.items[3] is a function, which has no JSON form",
		`return {a = {b = 0/0}}`:                                   "result.a.b is nan, which has no JSON form",
		`return {a = math.huge}`:                                   "result.a is inf, which has no JSON form",
		`return {1, nil, 3}`:                                       "result[2] is nil: a list has no holes; use tea.null",
		`return {a = {1, 2, x = 3}}`:                               `result.a has list elements and the key "x"; a table is a list or an object`,
		`return {a = {[200] = 1, x = 1}}`:                          `result.a has list elements and the key "x"; a table is a list or an object`,
		`return {a = {[200] = 1}}`:                                 `result.a[1] is nil: a list has no holes; use tea.null`,
		`return {[true] = 1}`:                                      "result has the key true: an object has string keys, a list the keys 1..n",
		`return {[1.5] = 1}`:                                       "result has the key 1.5: an object has string keys, a list the keys 1..n",
		`return {["odd key"] = {[0] = 1}}`:                         `result["odd key"] has the key 0: an object has string keys, a list the keys 1..n`,
		`local t = {} t.self = t return t`:                         "result contains itself",
		`local t = {} for i = 1, 300 do t = {t} end return t`:      "result nests more than 200 levels deep",
		`return {co = coroutine.create(print)}`:                    "result.co is a thread, which has no JSON form",
		`return {lib = string}`:                                    "result.lib is a library, which has no JSON form",
		`return tea.json.encode({x = print})`:                      "value.x is a function, which has no JSON form",
		`return tea.json.decode("{")`:                              "decode JSON: unexpected EOF",
		`return tea.json.decode(("["):rep(300) .. ("]"):rep(300))`: "the JSON value: nests more than 200 levels deep",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			_, err := eval(t, text, script.Env{})
			var rerr *script.RunError
			if !errors.As(err, &rerr) || rerr.Kind != script.ScriptError || rerr.Message != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

// FuzzBorder converts JSON to Lua and back, which must not change it.
func FuzzBorder(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5,null,"x",{}],"b":{"c":null}}`, `[9007199254740993,9007199254740992]`, `{"":[[]],"1":{}}`, `[1e300,-0.5,123456789012345678901234567890]`} {
		f.Add([]byte(seed))
	}
	rt := script.New(script.Options{})
	c, err := rt.Compile(script.Source{Name: "f", Text: `for k, v in pairs(state) do end return {copy = item, state = state}`})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := value.Decode(data)
		if err != nil || v == nil {
			return
		}
		got, err := c.Run(t.Context(), script.Env{State: object{"v": v}, Globals: script.Values{"item": v}})
		if err != nil {
			if strings.Contains(err.Error(), "levels deep") {
				return
			}
			t.Fatal(err)
		}
		if want := any(object{"copy": v, "state": object{"v": v}}); !value.Equal(got, want) {
			t.Errorf("got  %v\nwant %v", got, want)
		}
	})
}

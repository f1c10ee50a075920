package script_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/script"
)

// borderState has one of everything that is easy to lose on the way.
func borderState() object {
	return object{
		"none": nil, "list": list{int64(1), nil, int64(3)}, "object": object{"k": "v", "none": nil},
		"empty_list": list{}, "empty_object": object{}, "big": int64(9007199254740993), "least": int64(math.MinInt64),
		"bigs": list{int64(9007199254740993), int64(9007199254740992)}, "deep": object{"list": list{object{"none": nil}}},
	}
}

func TestConversionKeepsUnchangedValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]any{
		// What is returned as it came.
		`return state`: borderState(),
		`for k in pairs(state) do end return state`:                               borderState(),
		`local t = {} for k, v in pairs(state.deep) do t[k] = v end return t`:     object{"list": list{object{"none": nil}}},
		`return {state.empty_list, state.empty_object}`:                           list{list{}, object{}},
		`return {state.big, state.least}`:                                         list{int64(9007199254740993), int64(math.MinInt64)},
		`return {state.bigs}`:                                                     list{list{int64(9007199254740993), int64(9007199254740992)}},
		`return tea.json.decode(tea.json.encode(state.bigs))`:                     list{int64(9007199254740993), int64(9007199254740992)},
		`return {tostring(state.big), state.big .. "", ("%d"):format(state.big)}`: list{"9007199254740993", "9007199254740993", "9007199254740993"},

		// What is changed and returned.
		`state.list[1] = 9 return {state.list}`:                                           list{list{int64(9), nil, int64(3)}},
		`state.object.k = nil return {state.object}`:                                      list{object{"none": nil}},
		`state.object.none = 1 return {state.object}`:                                     list{object{"k": "v", "none": int64(1)}},
		`local o = state.deep o.list = nil return {o}`:                                    list{object{}},
		`local l = state.list table.remove(l) table.remove(l) table.remove(l) return {l}`: list{list{}},
		`state.empty_list.x = 1 return {state.empty_list}`:                                list{object{"x": int64(1)}},
		`state.empty_object[1] = 1 return {state.empty_object}`:                           list{list{int64(1)}},
		`table.insert(state.list, 4) return {state.list}`:                                 list{list{int64(1), nil, int64(3), int64(4)}},
		`state.list = nil return {state.list == nil, #tea.json.encode({state.list})}`:     list{true, int64(2)},

		// Nulls.
		`return {state.none == nil, state.list[2] == tea.null, state.object.none == nil}`: list{true, true, true},
		`return {a = tea.null, b = {tea.null, {c = tea.null}}}`:                           object{"a": nil, "b": list{nil, object{"c": nil}}},
		`local t = {} t[1] = tea.null return t`:                                           list{nil},

		// Numbers.
		`return {6 / 2, 2^53, -2^63, 2^62, -0.0, 0.5, 1e300}`:                                                                        list{int64(3), int64(1 << 53), int64(math.MinInt64), int64(1 << 62), int64(0), 0.5, 1e300},
		`return {2^63, 1.5 * 2, state.big + 0}`:                                                                                      list{9223372036854775808.0, int64(3), int64(9007199254740992)},
		`local d, e = 2^53, state.big return {d, e, -(-e), math.max(e, 1), unpack({e})}`:                                             list{int64(1 << 53), int64(9007199254740993), int64(1 << 53), int64(1 << 53), int64(9007199254740993)},
		`local t = {state.bigs[2], state.bigs[1]} table.insert(t, 1, table.remove(t)) for k, v in pairs(t) do t[k] = v end return t`: list{int64(9007199254740993), int64(9007199254740992)},
		`local f = function(...) local a, b = select(2, ...) return b, a end return {f(1, state.big, state.bigs[2])}`:                list{int64(9007199254740992), int64(9007199254740993)},

		// Text.
		`return {("ä"):upper(), ("\255\195\132"):lower(), ("\0"):rep(2)}`: list{"Ä", "\uFFFDä", "\x00\x00"},
		`return {["\255"] = "a\254b"}`:                                    object{"\uFFFD": "a\uFFFDb"},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			env := script.Env{State: borderState()}
			got := mustEval(t, text, env)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if d := cmp.Diff(borderState(), env.State); d != "" {
				t.Errorf("the state itself has changed (-want +got):\n%s", d)
			}
		})
	}
}

func TestConversionRefusesValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`return {a = 0/0}`:                          "flow.yaml: result.a is nan, which has no JSON form",
		`return {1, nil, 3}`:                        "flow.yaml: result[2] is nil: a list has no holes; use tea.null",
		`return {1, x = 2}`:                         `flow.yaml: result has list elements and the key "x"; a table is a list or an object`,
		`return {[2] = 1, [1] = 1, [0] = 1}`:        "flow.yaml: result has list elements and the key 0; a table is a list or an object",
		`return {[1.5] = 1}`:                        "flow.yaml: result has the key 1.5: an object has string keys, a list the keys 1..n",
		`local t = {} t.t = {t} return t`:           "flow.yaml: result contains itself",
		`return {a = {b = string}}`:                 "flow.yaml: result.a.b is a library, which has no JSON form",
		`return {a = coroutine.create(print)}`:      "flow.yaml: result.a is a thread, which has no JSON form",
		`return tea.action("x", {a = {math.huge}})`: "flow.yaml:1: params.a[1] is inf, which has no JSON form",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			env := hostileEnv()
			if v, err := eval(t, text, env); err == nil || err.Error() != want {
				t.Errorf("got %v, %v; want %s", v, err, want)
			}
		})
	}
}

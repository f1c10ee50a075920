package script_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/script"
)

// results are three entries; made counts those that were looked at.
func results(made *[]int) script.Objects {
	return script.Objects{Len: 3, At: func(i int) map[string]any {
		*made = append(*made, i)
		return object{
			"branch": string(rune('a' + i)), "success": i != 1, "error": nil,
			"state": object{"n": int64(i), "big": int64(9007199254740993), "list": list{int64(i)}, "none": nil, "inner": object{"x": int64(i)}},
		}
	}}
}

func TestObjectsAreConvertedOnAccess(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       any
		made       []int
	}{
		{"length", `return #r`, int64(3), nil},
		{"length by functions", `return {table.getn(r), table.maxn(r), #r + #r}`, list{int64(3), int64(3), int64(6)}, nil},
		{"an entry", `return r[2].branch`, "b", []int{1}},
		{"behind the end", `return r[4] == nil and r[0] == nil and r.x == nil`, true, nil},
		{"a missing field", `return r[1].none == nil and r[1].error == nil`, true, []int{0}},
		{"get", `return {r[2]:get("success"), r[2]:get("state").n, r[2]:get("none", 5), r[2]:get("none") == nil}`, list{false, int64(1), int64(5), true}, []int{1}},
		{"ipairs", `local s = "" for i, p in ipairs(r) do s = s .. i .. p.branch .. p.state.n end return s`, "1a02b13c2", []int{0, 1, 2}},
		{"pairs", `local n = 0 for k, p in pairs(r) do n = n + p.state.list[1] end return n`, int64(3), []int{0, 1, 2}},
		{"fields in order", `local s = "" for k in pairs(r[1]) do s = s .. k .. " " end for k in pairs(r[1].state) do s = s .. k .. " " end return s`, "branch state success big inner list n ", []int{0}},
		{"next", `local k = next(r[1].state) return k`, "big", []int{0}},
		{"same table", `return r[1] == r[1] and r[1].state == r[1].state and r[1].state.inner == r[1].state.inner`, true, []int{0}},
		{"assigned", `r[1].state.n = 7 r[1].branch = "z" r[1].new = true return {r[1].state.n, r[1].branch, r[1].new, r[2].branch}`, list{int64(7), "z", true, "b"}, []int{0, 1}},
		{"removed", `r[1].state.n = nil r[1].state.list = nil return r[1].state`, object{"big": int64(9007199254740993), "none": nil, "inner": object{"x": int64(0)}}, []int{0}},
		{"raw", `rawset(r[1], "branch", "z") return {rawget(r[1], "branch"), rawget(r[1].state, "n")}`, list{"z", int64(0)}, []int{0}},
		{"metatable", `local p = setmetatable(r[1], {__index = function() return "d" end}) return {p.branch, p.unknown}`, list{"a", "d"}, []int{0}},
		{"handed on", `return r[2].state`, object{"n": int64(1), "big": int64(9007199254740993), "list": list{int64(1)}, "none": nil, "inner": object{"x": int64(1)}}, []int{1}},
		{"json", `return tea.json.encode(r[1].state)`, `{"big":9007199254740993,"inner":{"x":0},"list":[0],"n":0,"none":null}`, []int{0}},
		{"sorted", `table.sort(r, function(a, b) return a.state.n > b.state.n end) return r[1].branch .. table.remove(r).branch`, "ca", []int{0, 1, 2}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var made []int
			got := mustEval(t, test.text, script.Env{Globals: script.Values{"r": results(&made)}})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if test.name != "sorted" { // in the order of the comparisons
				if diff := cmp.Diff(test.made, made); diff != "" {
					t.Errorf("entries made: -want +got:\n%s", diff)
				}
			}
		})
	}
}

// 4,000 entries with the same 100 KB in each state are 400 MB in Lua.
func TestMemoryIsUsedForAccessedValuesOnly(t *testing.T) {
	t.Parallel()
	words := make(list, 10_000)
	for i := range words {
		words[i] = strings.Repeat("x", 10)
	}
	env := script.Env{Globals: script.Values{"r": script.Objects{Len: 4000, At: func(i int) map[string]any {
		return object{"branch": "b", "success": i%2 == 0, "state": object{"words": words, "n": int64(i)}}
	}}}}
	got := mustEval(t, `local ok, sum = 0, 0 for _, p in ipairs(r) do if p.success then ok = ok + 1 end sum = sum + p.state.n end return {#r, ok, sum}`, env)
	if diff := cmp.Diff(list{int64(4000), int64(2000), int64(7998000)}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

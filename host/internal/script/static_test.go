package script_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/script"
)

// static writes what is known about a chunk without running it.
func static(c *script.Chunk) []string {
	var out []string
	for _, p := range c.StateAssignments() {
		out = append(out, fmt.Sprintf("assigns %d:%d", p.Line, p.Column))
	}
	for _, r := range c.StateReads() {
		out = append(out, fmt.Sprintf("reads %s %d:%d", r.Name, r.Line, r.Column))
	}
	for _, r := range c.Globals() {
		out = append(out, fmt.Sprintf("global %s %d:%d", r.Name, r.Line, r.Column))
	}
	keys, all := c.ReturnKeys()
	if len(keys) > 0 {
		out = append(out, fmt.Sprint("returns ", keys))
	}
	if !all {
		out = append(out, "returns more")
	}
	return out
}

func TestFactsAboutAChunk(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"nothing":             {`local x = 1`, nil},
		"reads":               {"local a = state.x\nreturn {y = state['z'] .. state.deep.er}", []string{"reads x 7:11", "reads z 8:13", "reads deep 8:27", "returns [y]"}},
		"libraries":           {`for k, v in pairs(variables) do print(string.len(k), item) end`, []string{"global variables 7:19", "global item 7:54"}},
		"assignment":          {"local a\n  state.x = 1", []string{"assigns 8:3"}},
		"nested assignment":   {`state.a.b[1] = 1`, []string{"assigns 7:1"}},
		"whole state":         {`state = {}`, []string{"assigns 7:1"}},
		"dynamic key":         {`for i = 1, 3 do state["k" .. i] = state.other end`, []string{"assigns 7:17"}},
		"several targets":     {`local a; a, state.x = 1, 2`, []string{"assigns 7:13"}},
		"in a function":       {`local function f() state.x = 1 end f()`, []string{"assigns 7:20"}},
		"state is returned":   {`state.x = 1 return state`, []string{"returns more"}},
		"key is returned":     {`state.x = (state.x or 0) + 1 return {x = state.x}`, []string{"returns [x]"}},
		"state is handed on":  {`state.x = 1 tea.log("info", "x", state)`, nil},
		"own reads":           {`state.x = 1 return {y = state.x}`, []string{"assigns 7:1", "returns [y]"}},
		"local state":         {`local state = {} state.x = 1 return state`, []string{"returns more"}},
		"parameter state":     {`local f = function(state) state.x = 1 return state.y end return {f({})}`, nil},
		"loop variable state": {`for _, state in ipairs({}) do state.x = 1 end`, nil},
		"block ends a local":  {`do local state = {} end return {a = state.b}`, []string{"reads b 7:37", "returns [a]"}},
		"several returns":     {`if x then return {b = 1, a = 2} end return {a = 3, ["c"] = 4}`, []string{"global x 7:4", "returns [a b c]"}},
		"unknown keys":        {`return {a = 1, [x] = 2}`, []string{"global x 7:17", "returns [a]", "returns more"}},
		"list":                {`return {1, 2}`, nil},
		"nil":                 {`if true then return nil end return`, nil},
		"call":                {`return tea.action("a.b", {})`, []string{"returns more"}},
		"inner return":        {`local f = function() return {no = 1} end return {yes = f()}`, []string{"returns [yes]"}},
		"recursion":           {`local function f(n) return f(n - 1) end return {a = f(1)}`, []string{"returns [a]"}},
		"method":              {`return {a = state.text:upper()}`, []string{"reads text 7:13", "returns [a]"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rt := script.New(script.Options{})
			c, err := rt.Compile(script.Source{Name: "flow.yaml", Line: 7, Text: test.text})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, static(c)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

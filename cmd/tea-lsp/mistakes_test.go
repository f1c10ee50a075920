package main

import (
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// good is a workflow without mistakes, which the tests below change.
const good = `name: orders
state_schema: {rows: list, total: int}
initial_state: {city: Zürich 😀}
variables: {limit: 5}
imports:
  - {path: mod.lua}
nodes:
  - name: load
    uses: http.get
    with: {url: "https://localhost/{{ state.city }}", timeout_seconds: 5}
    output: {rows: "{{ result.body }}"}
    retry: {max_retries: 2}
  - name: check
    if: "{{ state.total < variables.limit }}"
    run: |
      local n = 0
      for _, row in ipairs(state.rows) do
        n = n + 1
      end
      return {total = n}
    goto:
      - {if: "total > 3", to: report}
      - {to: END}
  - name: report
    uses: mod.hello
    on_error: continue
    fallback: again
  - {name: again, uses: time.sleep, with: {seconds: 1}}
edges:
  - {from: again, to: END}
config: {interrupt_before: [report]}
`

// mistakes are what people type; the line is that of the finding, from 0.
var mistakes = []struct {
	name, old, new, code string
	line                 int
}{
	{"a key of a node", "on_error: continue", "on_eror: continue", "TEA1101", 25},
	{"a top key", "variables: {limit: 5}", "variabels: {limit: 5}", "TEA1101", 3},
	{"a value of an enum", "on_error: continue", "on_error: contineu", "TEA1104", 25},
	{"a text for a number", "max_retries: 2", "max_retries: two", "TEA1102", 11},
	{"an action", "uses: http.get", "uses: http.gett", "TEA1401", 8},
	{"an action of an unknown bundle", "uses: http.get", "uses: htp.get", "TEA1401", 8},
	{"an action of a module", "uses: mod.hello", "uses: mod.hallo", "TEA1401", 24},
	{"a parameter", "timeout_seconds: 5", "timeout: 5", "TEA1403", 9},
	{"a missing parameter", "url: \"https://localhost/{{ state.city }}\", ", "", "TEA1402", 9},
	{"the type of a parameter", "seconds: 1", "seconds: soon", "TEA1404", 27},
	{"a goto", "to: report}", "to: reprot}", "TEA1201", 21},
	{"an edge's source", "from: again", "from: agian", "TEA1201", 29},
	{"an edge's target", "{from: again, to: END}", "{from: again, to: End}", "TEA1201", 29},
	{"a fallback", "fallback: again", "fallback: agin", "TEA1201", 26},
	{"an interrupt", "interrupt_before: [report]", "interrupt_before: [reports]", "TEA1209", 30},
	{"a node twice", "name: report", "name: load", "TEA1202", 23},
	{"two bodies", "uses: mod.hello", "uses: mod.hello\n    run: return {}", "TEA1107", 25},
	{"a root of a template", "{{ state.city }}", "{{ stat.city }}", "TEA1304", 9},
	{"a variable", "variables.limit }}", "variables.limt }}", "TEA1307", 13},
	{"an open template", "variables.limit }}\"", "variables.limit }\"", "TEA1301", 13},
	{"a filter", "state.city }}", "state.city | uper }}", "TEA1301", 9},
	{"a condition", "total > 3", "total > > 3", "TEA1302", 21},
	{"a missing end in Lua", "        n = n + 1\n      end\n", "        n = n + 1\n", "TEA1303", 18},
	{"!= in Lua", "local n = 0", "local n = state.total != 0", "TEA1303", 15},
	{"a name in Lua", "ipairs(state.rows)", "ipair(state.rows)", "TEA1306", 16},
	{"a template without quotes", "if: \"{{ state.total < variables.limit }}\"", "if: {{ state.total }}", "TEA1010", 13},
	{"a missing bracket", "{seconds: 1}}", "{seconds: 1}", "TEA1006", 27},
	{"a tab", "    output:", "\toutput:", "TEA1006", 10},
	{"a duplicate key", "    retry:", "    uses: http.post\n    retry:", "TEA1009", 11},
	{"a missing file", "path: mod.lua", "path: mods.lua", "TEA1501", 5},
	{"a type of the state", "total: int}", "total: integr}", "TEA1104", 1},
	{"a missing colon", "    uses: http.get", "    uses http.get", "TEA1006", 8},
}

// Each mistake is typed into the document, found, and corrected again.
func TestMistakesWhileTyping(t *testing.T) {
	peertest.Long(t, "the server waits for a pause in the typing")
	t.Parallel()
	module := "local M = {}\nfunction M.register_actions(r) r.hello = function() return {} end end\nreturn M\n"
	c := initialized(t, map[string]string{"mod.lua": module})
	c.open("flow.yaml", good)
	if got := c.findings("flow.yaml", 1); len(got) > 0 {
		t.Fatal(short(got))
	}
	version := 1
	for _, m := range mistakes {
		i := strings.Index(good, m.old)
		if i < 0 {
			t.Fatalf("%s: no %q", m.name, m.old)
		}
		from, to := placeAt(good, i), placeAt(good, i+len(m.old))
		version++
		c.change("flow.yaml", version, part(from.Line, from.Character, to.Line, to.Character, m.new))
		got := c.findings("flow.yaml", version)
		ok := false
		for _, f := range got {
			ok = ok || f.Code == m.code && f.Range.Start.Line == m.line && strings.HasSuffix(f.CodeDescription.Href, f.Code+".md")
		}
		if !ok {
			t.Errorf("%s (%s in line %d):\n%s", m.name, m.code, m.line, short(got))
		}
		end := placeAt(good[:i]+m.new, i+len(m.new))
		version++
		c.change("flow.yaml", version, part(from.Line, from.Character, end.Line, end.Character, m.old))
		if got := c.findings("flow.yaml", version); len(got) > 0 {
			t.Fatalf("%s corrected: %s", m.name, short(got))
		}
	}
}

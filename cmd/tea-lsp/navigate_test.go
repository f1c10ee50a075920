package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type where struct {
	URI   string
	Range spanOf
}

// named has the node load at each place that marks with a number say; 0 is its name.
const named = `name: demo
config: {interrupt_before: ['load']}
imports:
  - {path: mod.lua}
nodes:
  - name: "load"
    uses: mod.hello
    output: other
  - {name: check, if: "{{ nodes.load.success and nodes['load'].x }}", goto: [{if: "state.load == 1 and load != 2", to: load}, {to: sub}]}
  - name: loop
    type: while_loop
    condition: "nodes.check.success"
    body:
      - {name: step, goto: END}
  - name: sub
    subgraph: sub.yaml
    fallback: load
  - name: code
    run: |
      local m = require("mod")
      return {a = state.load, b = state.load}
edges:
  - {from: START, to: load}
  - {from: code, to: ["load", check]}
`

func TestDefinition(t *testing.T) {
	t.Parallel()
	module := "local M = {}\nfunction M.register_actions(r)\n  r.hello = function() return {} end\nend\nreturn M\n"
	c := initialized(t, map[string]string{"mod.lua": module, "sub.yaml": "nodes: [{name: s}]"})
	c.open("flow.yaml", named)
	if got := c.findings("flow.yaml", 1); len(got) > 0 {
		t.Fatal(short(got))
	}
	for text, want := range map[string]string{
		"to: lo|ad}": "flow.yaml 5:11-5:15", "interrupt_before: ['lo|ad": "flow.yaml 5:11-5:15", "nodes.lo|ad.": "flow.yaml 5:11-5:15",
		"condition: \"nodes.che|ck": "flow.yaml 8:11-8:16", "fallback: lo|ad": "flow.yaml 5:11-5:15", "uses: mod.hel|lo": "mod.lua 2:3-2:9",
		"subgraph: sub.y|aml": "sub.yaml 0:0-0:0", "{path: mo|d.lua": "mod.lua 0:0-0:0", "require(\"mo|d": "mod.lua 0:0-0:0",
		"na|me: demo": " 0:0-0:0", "name: st|ep": "flow.yaml 13:15-13:19",
	} {
		before, after, _ := strings.Cut(text, "|")
		i := strings.Index(named, before+after)
		if i < 0 {
			t.Fatal(text)
		}
		cursor := placeAt(named, i+len(before))
		var got where
		convert(t, c.call("textDocument/definition", c.on("flow.yaml", cursor)), &got)
		if d := cmp.Diff(want, strings.TrimPrefix(got.URI, c.uri("")+"/")+" "+got.Range.String()); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
}

// apply returns a text after edits that do not overlap.
func apply(t *testing.T, text string, edits []edit) string {
	t.Helper()
	slices.SortFunc(edits, func(a, b edit) int { return offset(text, b.Range.Start) - offset(text, a.Range.Start) })
	for _, e := range edits {
		text = text[:offset(text, e.Range.Start)] + e.NewText + text[offset(text, e.Range.End):]
	}
	return text
}

// offset is for texts without characters of several bytes.
func offset(text string, p place) int {
	lines := strings.SplitAfter(text, "\n")
	return len(strings.Join(lines[:p.Line], "")) + p.Character
}

type edit struct {
	Range   spanOf
	NewText string
}

type workspaceEdit struct{ Changes map[string][]edit }

func TestRename(t *testing.T) {
	t.Parallel()
	c := initialized(t, nil)
	c.open("flow.yaml", named)
	cursor := placeAt(named, strings.Index(named, "fallback: load")+len("fallback: lo"))
	var found []where
	params := c.on("flow.yaml", cursor)
	params["context"] = map[string]any{"includeDeclaration": true}
	convert(t, c.call("textDocument/references", params), &found)
	if len(found) != 12 {
		t.Errorf("%d references: %v", len(found), found)
	}
	var span spanOf
	convert(t, c.call("textDocument/prepareRename", params), &span)
	if span.String() != "16:14-16:18" {
		t.Error(span)
	}
	params["newName"] = "fetch"
	var got workspaceEdit
	convert(t, c.call("textDocument/rename", params), &got)
	want := strings.ReplaceAll(named, "load", "fetch")
	if d := cmp.Diff(want, apply(t, named, got.Changes[c.uri("flow.yaml")])); d != "" {
		t.Error(d)
	}
	for name, why := range map[string]string{"check": "already", "a b": "letters", "END": "meaning"} {
		params["newName"] = name
		if got := c.request("textDocument/rename", params); !strings.Contains(got["error"].(map[string]any)["message"].(string), why) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A node in a loop can have the name of one outside, which its routes do not mean; a key
// of the state that is named like a node is not the node.
func TestRenameScope(t *testing.T) {
	t.Parallel()
	const text = `state_schema: {a: int}
nodes:
  - {name: a, goto: b}
  - {name: b, if: "state.a == 1", goto: END}
  - name: loop
    type: while_loop
    condition: "{{ state.a < 3 }}"
    body:
      - {name: b, goto: c}
      - {name: c, goto: b}
`
	c := initialized(t, nil)
	c.open("flow.yaml", text)
	for find, want := range map[string]int{"{name: |a": 1, "goto: |c": 2, "goto: |b}\n  - {name: b": 2, "{name: c, goto: |b": 2} {
		before, after, _ := strings.Cut(find, "|")
		cursor := placeAt(text, strings.Index(text, before+after)+len(before))
		params := c.on("flow.yaml", cursor)
		params["newName"] = "other"
		var got workspaceEdit
		convert(t, c.call("textDocument/rename", params), &got)
		if edits := got.Changes[c.uri("flow.yaml")]; len(edits) != want {
			t.Errorf("%s: %v", find, edits)
		}
	}
}

func TestSymbols(t *testing.T) {
	t.Parallel()
	c := initialized(t, nil)
	c.open("flow.yaml", named)
	type symbol struct {
		Name, Detail          string
		Range, SelectionRange spanOf
		Children              []struct{ Name string }
	}
	var got []symbol
	convert(t, c.call("textDocument/documentSymbol", map[string]any{"textDocument": map[string]any{"uri": c.uri("flow.yaml")}}), &got)
	var lines []string
	for _, s := range got {
		lines = append(lines, strings.TrimSpace(s.Name+" "+s.Detail+" "+s.Range.String()+" "+s.SelectionRange.String()))
		for _, inner := range s.Children {
			lines = append(lines, "  "+inner.Name)
		}
	}
	want := []string{
		"load mod.hello 5:4-7:17 5:11-5:15", "check  8:4-8:137 8:11-8:16", "loop  9:4-13:31 9:10-9:14", "  step", "sub  14:4-16:18 14:10-14:13", "code  17:4-23:37 17:10-17:14",
	}
	if d := cmp.Diff(want, lines); d != "" {
		t.Error(d)
	}
}

func TestFixes(t *testing.T) {
	t.Parallel()
	c := initialized(t, nil)
	text := `nodes:
  - {name: load, uses: http.gett, with: {urll: x}}
  - {name: next, gotoo: x, goto: lod}
  - {name: last, uses: http.get, with: {url: "{{ stat.x }}", headers: {a: "{{ variables.limt }}"}}}
  - {name: other, when: "true", timeout: 5, run: "return {x = state.a != 1}"}
  - {name: end, run: "return {}", next: END}
variables: {limit: 1}
`
	want := strings.NewReplacer("http.gett", "http.get", "gotoo", "goto", "lod}", "load}", "stat.x", "state.x", "limt", "limit", "when:", "if:", "timeout:", "timeout_seconds:", "!=", "~=", "next:", "goto:").Replace(text)
	fixed(t, c, "flow.yaml", text, want)
	text = `nodes: [{name: dollar, uses: http.get, with: {url: "${{ state.url }}"}}]`
	fixed(t, c, "dollar.yaml", text, strings.Replace(text, "$", "", 1))
}

// fixed checks that the fixes of all findings in text result in want.
func fixed(t *testing.T, c *client, file, text, want string) {
	t.Helper()
	c.open(file, text)
	findings := c.findings(file, 1)
	params := map[string]any{"textDocument": map[string]any{"uri": c.uri(file)}}
	var raw []any
	for _, f := range findings {
		raw = append(raw, map[string]any{"range": map[string]any{"start": f.Range.Start, "end": f.Range.End}, "message": f.Message, "source": f.Source, "code": f.Code})
	}
	params["context"] = map[string]any{"diagnostics": raw}
	var got []struct {
		Title, Kind string
		Edit        workspaceEdit
	}
	convert(t, c.call("textDocument/codeAction", params), &got)
	var edits []edit
	for _, g := range got {
		edits = append(edits, g.Edit.Changes[c.uri(file)]...)
	}
	if d := cmp.Diff(want, apply(t, text, edits)); d != "" {
		t.Errorf("%s\n%s", d, short(findings))
	}
}

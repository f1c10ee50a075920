package main

import (
	"slices"
	"strings"
	"testing"
)

// at returns a text without the last character |, and the position of that.
func at(t *testing.T, text string) (string, place) {
	t.Helper()
	i := strings.LastIndex(text, "|")
	if i < 0 {
		t.Fatalf("no cursor in %q", text)
	}
	return text[:i] + text[i+1:], placeAt(text, i)
}

// placeAt returns the position of an offset.
func placeAt(text string, i int) place {
	head := text[:i]
	line := strings.LastIndex(head, "\n") + 1
	units := 0
	for _, r := range head[line:] {
		units++
		if r > 0xffff {
			units++
		}
	}
	return place{strings.Count(head, "\n"), units}
}

func (c *client) on(name string, where place) map[string]any {
	return map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}, "position": where}
}

type item struct {
	Label, Detail, Documentation string
	TextEdit                     struct {
		Range   spanOf
		NewText string
	}
}

const head = `name: demo
variables: {limit: 5}
state_schema: {rows: list, total: int}
initial_state: {city: Rome}
settings: {http: {timeout_seconds: 3}}
imports:
  - {path: mod.lua}
`

const tail = `
  - {name: load-it, uses: http.get, with: {url: "https://localhost", headers: {a: "{{ secrets.api_key }}"}}, output: page}
  - {name: sum, run: "return {total = 1}"}
`

func TestCompletion(t *testing.T) {
	t.Parallel()
	module := "local M = {}\nfunction M.register_actions(r) r.hello = function() return {} end end\nreturn M\n"
	c := initialized(t, map[string]string{"mod.lua": module})
	c.open("flow.yaml", head+"nodes:"+tail)
	c.findings("flow.yaml", 1)
	version := 1
	for name, test := range map[string]struct {
		text      string
		want, not string
	}{
		"top":              {head + "nodes:" + tail + "ed|", "edges: budget:", "name: uses:"},
		"node key":         {head + "nodes:\n  - name: x\n    us|" + tail, "uses: goto: run: with:", "name: edges:"},
		"node key in {}":   {head + "nodes:\n  - {name: x, |}" + tail, "uses: goto:", "name: edges:"},
		"action":           {head + "nodes:\n  - name: x\n    uses: ht|" + tail, "http.get mod.hello data.merge", "uses:"},
		"parameter":        {head + "nodes:\n  - name: x\n    uses: http.get\n    with:\n      u|" + tail, "url: headers:", "uses: method:"},
		"parameter in {}":  {head + "nodes:\n  - {name: x, uses: file.read, with: {pa|}}" + tail, "path:", "url:"},
		"beside action":    {head + "nodes:\n  - name: x\n    action: http.get\n    u|" + tail, "url: headers: goto:", "method:"},
		"beside with":      {head + "nodes:\n  - name: x\n    action: http.get\n    with:\n      url: x\n    u|" + tail, "goto:", "url: headers:"},
		"beside uses":      {head + "nodes:\n  - name: x\n    uses: http.get\n    u|" + tail, "with: goto:", "url:"},
		"parameter's enum": {head + "nodes:\n  - {name: x, uses: csv.parse, with: {has_header: |}}" + tail, "true false", "path"},
		"key of a loop":    {head + "nodes:\n  - name: x\n    type: while_loop\n    bo|" + tail, "body: condition:", ""},
		"enum":             {head + "nodes:\n  - {name: x, on_error: |}" + tail, "continue fallback stop", "sum"},
		"goto":             {head + "nodes:\n  - name: x\n    goto: |" + tail, "load-it sum END", "START"},
		"goto rule":        {head + "nodes:\n  - name: x\n    goto:\n      - {if: a, to: lo|}" + tail, "load-it sum END", ""},
		"goto rule's key":  {head + "nodes:\n  - name: x\n    goto:\n      - |" + tail, "if: to:", "sum"},
		"from":             {head + "nodes:" + tail + "edges:\n  - from: |", "START load-it", "END"},
		"list of targets":  {head + "nodes:" + tail + "edges:\n  - {from: sum, parallel: [load-it, |]}", "load-it sum", ""},
		"interrupts":       {head + "nodes:" + tail + "config:\n  interrupt_before:\n    - |", "load-it sum", ""},
		"type":             {head + "nodes:" + tail + "x-a: 1\nstate_schema: {a: |}", "str int list", ""},
		"root":             {head + "nodes:\n  - {name: x, uses: a, with: {b: \"{{ st|\"}}" + tail, "state variables secrets city rows total page nodes", "id"},
		"state":            {head + "nodes:\n  - {name: x, uses: a, with: {b: \"{{ state.| }}\"}}" + tail, "city rows total page", "state limit"},
		"variables":        {head + "nodes:\n  - {name: x, if: \"{{ variables.|\"}" + tail, "limit", "city"},
		"secrets":          {head + "nodes:\n  - {name: x, if: \"{{ secrets.a|\"}" + tail, "api_key", "city"},
		"settings":         {head + "nodes:\n  - {name: x, if: \"{{ settings.|\"}" + tail, "http", "city"},
		"nodes":            {head + "nodes:\n  - {name: x, if: \"{{ nodes.|\"}" + tail, "load-it sum", "city"},
		"condition":        {head + "nodes:\n  - {name: x, if: c|}" + tail, "city total", ""},
		"Lua":              {head + "nodes:\n  - name: x\n    run: |\n      return {a = state.|}" + tail, "city rows total", "state"},
		"broken":           {head + "nodes:\n  - {name: x, goto: |" + tail + "\n : : {", "load-it sum", ""},
		"import":           {head + "  - {|}\nnodes:" + tail, "path: plugin: namespace:", "uses:"},
	} {
		text, where := at(t, test.text)
		version++
		c.change("flow.yaml", version, whole(text))
		var items []item
		convert(t, c.call("textDocument/completion", c.on("flow.yaml", where)), &items)
		var got []string
		for _, i := range items {
			got = append(got, i.Label)
			if strings.HasSuffix(i.TextEdit.NewText, ": ") {
				got[len(got)-1] += ":"
			}
		}
		for _, want := range strings.Fields(test.want) {
			if !slices.Contains(got, want) {
				t.Errorf("%s: no %s in %v", name, want, got)
			}
		}
		for _, not := range strings.Fields(test.not) {
			if slices.Contains(got, not) {
				t.Errorf("%s: %s in %v", name, not, got)
			}
		}
	}
}

// The edit replaces the word that is there, and the positions count UTF-16.
func TestCompletionReplacesTheWord(t *testing.T) {
	t.Parallel()
	c := initialized(t, nil)
	text, where := at(t, "nodes:\n  - {name: 😀, uses: http.p|ost, with: {url: x}}\n")
	c.open("flow.yaml", text)
	var items []item
	convert(t, c.call("textDocument/completion", c.on("flow.yaml", where)), &items)
	i := slices.IndexFunc(items, func(i item) bool { return i.Label == "http.get" })
	if i < 0 || items[i].TextEdit.Range.String() != "1:21-1:30" || items[i].TextEdit.NewText != "http.get" || items[i].Detail == "" {
		t.Errorf("%+v", items)
	}
}

func TestHover(t *testing.T) {
	t.Parallel()
	c := initialized(t, nil)
	for name, test := range map[string]struct{ text, want string }{
		"action":    {"nodes:\n  - {name: a, uses: http.g|et}", "### `http.get`"},
		"table":     {"nodes:\n  - name: a\n    uses: |http.get\n", "| `url` | string | yes |"},
		"top":       {"sta|te_schema: {}\nnodes: []", "The keys of the state and their types"},
		"node":      {"nodes:\n  - name: a\n    g|oto: b", "The next node, or a list of rules."},
		"in {}":     {"nodes:\n  - {name: a, go|to: b}", "The next node, or a list of rules."},
		"parameter": {"nodes:\n  - {name: a, uses: http.get, with: {ur|l: x}}", "URL"},
		"nothing":   {"nodes:\n  - {name: |a}", ""},
		"Lua":       {"nodes:\n  - name: a\n    run: |\n      go|to: x", ""},
	} {
		text, where := at(t, test.text)
		c.open("flow.yaml", text)
		var got struct{ Contents struct{ Kind, Value string } }
		convert(t, c.call("textDocument/hover", c.on("flow.yaml", where)), &got)
		if !strings.Contains(got.Contents.Value, test.want) || test.want == "" && got.Contents.Value != "" {
			t.Errorf("%s: %q", name, got.Contents.Value)
		}
	}
}

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const flow = `name: grüße 😀
nodes:
  - name: first
    uses: http.gett
    with: {url: "https://localhost"}
  - {name: second, goto: "frist", metadata: {emoji: "😀"}, iff: x}
  - name: third
    run: |
      local x = 1
      return {y = = x}
`

// The findings are those of validate, for the text in the editor, with ranges in UTF-16.
func TestDiagnostics(t *testing.T) {
	t.Parallel()
	c := initialized(t, nil)
	c.open("flow.yaml", flow)
	got := c.findings("flow.yaml", 1)
	want := strings.Join([]string{
		`3:10-3:19 TEA1401 unknown action "http.gett"`,
		`5:26-5:31 TEA1201 unknown node "frist"`,
		`5:59-5:62 TEA1101 node "second": unknown key "iff" in node`,
		`9:18-9:22 TEA1303 Lua: syntax error near "="`,
	}, "\n")
	if d := cmp.Diff(want, short(got)); d != "" {
		t.Error(d)
	}
	first := got[0]
	if first.Severity != 1 || first.Source != "tea" || !strings.HasSuffix(first.CodeDescription.Href, "/docs/errors/TEA1401.md") || !strings.Contains(first.Message, "\nhint: did you mean \"http.get\"?") {
		t.Errorf("%+v", first)
	}
}

func TestIncrementalChanges(t *testing.T) {
	t.Parallel()
	c := initialized(t, nil)
	c.open("flow.yaml", "name: a\nnodes:\n  - {name: n😀n, run: \"return {}\", goto: m}\n")
	if got := short(c.findings("flow.yaml", 1)); !strings.Contains(got, `2:41-2:42 TEA1201`) {
		t.Error(got)
	}
	c.change("flow.yaml", 2, part(2, 41, 2, 42, "END"), part(0, 6, 0, 7, "é"), part(0, 7, 0, 7, "\n# x"))
	if got := c.findings("flow.yaml", 2); len(got) != 0 {
		t.Error(short(got))
	}
	c.change("flow.yaml", 3, part(3, 12, 3, 14, "")) // the emoji is two units
	c.change("flow.yaml", 4, whole("nodes: []\n"), part(0, 7, 0, 9, "\n  - {name: x, goto: y}"))
	if got := short(c.findings("flow.yaml", 4)); got != `1:20-1:21 TEA1201 unknown node "y"` {
		t.Error(got)
	}
}

// The last of many versions is checked, although not each one is.
func TestLastVersion(t *testing.T) {
	t.Parallel()
	c := initialized(t, nil)
	c.open("flow.yaml", "nodes:\n  - {name: a}\n")
	for version := 2; version <= 300; version++ {
		c.change("flow.yaml", version, part(1, 11, 1, 11, "a"))
	}
	c.change("flow.yaml", 301, part(1, 11, 1, 11, ", goto: b, name: "))
	if got := c.findings("flow.yaml", 301); len(got) == 0 {
		t.Error("nothing was found")
	}
}

// Modules and subgraphs are read from the open documents.
func TestOpenFilesComeFirst(t *testing.T) {
	t.Parallel()
	c := initialized(t, map[string]string{"sub.yaml": "nodes: [{name: s}]", "mod.lua": "return {}"})
	c.open("flow.yaml", "imports:\n  - {path: mod.lua}\nnodes:\n  - {name: a, uses: mod.hello}\n  - {name: b, subgraph: sub.yaml}\n")
	if got := short(c.findings("flow.yaml", 1)); got != `3:20-3:29 TEA1401 unknown action "mod.hello"` {
		t.Error(got)
	}
	c.open("mod.lua", "local M = {}\nfunction M.register_actions(r) r.hello = function() return {} end end\nreturn M\n")
	if got := c.findings("flow.yaml", 1); len(got) != 0 {
		t.Error(short(got))
	}
	c.open("sub.yaml", "nodes:\n  - {name: s, goto: nowhere}\n")
	if got := short(c.findings("sub.yaml", 1)); got != `1:20-1:27 TEA1201 unknown node "nowhere"` {
		t.Error(got) // once, although two workflows have it
	}
	c.notify("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": c.uri("sub.yaml")}})
	if got := c.findings("flow.yaml", 1); len(got) != 0 {
		t.Error(short(got)) // the file on disk is valid
	}
}

func TestOtherYAMLIsNotChecked(t *testing.T) {
	t.Parallel()
	c := initialized(t, nil)
	c.open("compose.yaml", "services:\n  web: {image: x}\n")
	c.open("flow.yaml", "nodes: [{name: a}]\n")
	for p := range c.published {
		if p.URI == c.uri("compose.yaml") {
			t.Fatal(p)
		}
		if p.URI == c.uri("flow.yaml") {
			break
		}
	}
}

// A session runs no code of a node, not even in the requests, and leaves no file behind.
func TestNothingRuns(t *testing.T) {
	t.Parallel()
	c := initialized(t, nil)
	text := "nodes:\n  - {name: spin, run: \"while true do end\"}\n  - {name: save, uses: file.write, with: {path: out.txt, content: x}, goto: spin}\n"
	c.open("flow.yaml", text)
	if got := c.findings("flow.yaml", 1); len(got) > 0 {
		t.Error(short(got))
	}
	params := c.on("flow.yaml", placeAt(text, strings.Index(text, "goto: spin")+7))
	params["newName"] = "turn"
	for _, method := range []string{"completion", "hover", "definition", "rename", "documentSymbol"} {
		c.call("textDocument/"+method, params)
	}
	c.call("shutdown", nil)
	c.notify("exit", nil)
	for range c.replies { // until it has ended
	}
	_ = c.cmd.Wait()
	for _, dir := range []string{c.dir, c.home} {
		if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
			t.Error(files, err)
		}
	}
}

func TestGarbage(t *testing.T) {
	t.Parallel()
	c := newClient(t, nil)
	if got := c.request("textDocument/hover", map[string]any{}); got["error"].(map[string]any)["code"] != -32002.0 {
		t.Error(got)
	}
	c.call("initialize", map[string]any{"capabilities": map[string]any{}})
	for _, test := range []struct {
		text string
		code float64
	}{
		{"{", -32700},
		{"[]", -32600},
		{`{"id": 1, "method": 5}`, -32600},
		{`{"id": 2, "method": "no/such"}`, -32601},
		{`{"id": 3, "method": "textDocument/didOpen", "params": [1]}`, -32602},
		{strings.Repeat(" ", 33<<20), -32600},
	} {
		c.send(test.text)
		if got, _ := c.reply()["error"].(map[string]any); got["code"] != test.code {
			t.Errorf("%.40s: %v", test.text, got)
		}
	}
	if _, err := c.in.Write([]byte("garbage\r\n\r\nContent-Length: x\r\n" + strings.Repeat("y", 10_000) + "\r\n")); err != nil {
		t.Fatal(err)
	}
	c.change("not-open.yaml", 1, part(5, 5, 1, 1, ""))
	c.open("flow.yaml", "nodes: [{name: a}]\n")
	c.change("flow.yaml", 2, part(-1, -5, -1, 2, "#"), part(900, 900, 3, 3, "\n"))
	if got := c.findings("flow.yaml", 2); len(got) == 0 {
		t.Log("valid")
	}
}

func TestEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end  func(*client)
		code int
	}{
		"exit":             {func(c *client) { c.call("shutdown", nil); c.notify("exit", nil) }, 0},
		"without shutdown": {func(c *client) { c.notify("exit", nil) }, 1},
		"closed":           {func(c *client) { _ = c.in.Close() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := initialized(t, nil)
			c.open("flow.yaml", flow)
			test.end(c)
			for range c.replies { // until it has ended
			}
			_ = c.cmd.Wait()
			if got := c.cmd.ProcessState.ExitCode(); got != test.code {
				t.Errorf("exit code %d", got)
			}
		})
	}
}

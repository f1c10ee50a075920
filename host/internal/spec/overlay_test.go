package spec

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

const overlaid = `
-- flow.yaml --
settings: {llm: {model: small, api_base: http://x}}
initial_state: {list: [1, 2], keep: 1}
nodes:
  - name: a
    uses: x.y
    with: {p: 1, q: 2}
  - id: b
    action: x.z
    params: {uses: 1}
    retry: {max_retries: 1}
  - name: c
edges:
  - {from: START, to: a}
  - {from: a, to: b, when: x}
  - {from: a, to: [b, c]}
  - {from: b, to: END}
`

func TestOverlay(t *testing.T) {
	t.Parallel()
	w := load(t, overlaid+`
-- over.yaml --
settings: {llm: {model: big}}
initial_state: {list: [3]}
nodes:
  - {name: d, run: x}
  - name: b
    with: {uses: 2}
    retry: {jitter: true}
  - {name: c, __delete__: true}
edges:
  - {from: a, to: [b, c], __delete__: true}
  - {from: a, to: b, when: y}
  - {from: b, to: __end__, when: z}
  - {from: d, to: END}
`, Options{Overlays: []string{"over.yaml"}, Config: `{"nodes": {"a": {"with": {"q": {"__delete__": true}, "r": 3}}, "e": null},
	"config": {"max_steps": 5}}`})

	compare(t, map[string]any{"llm": map[string]any{"model": "big", "api_base": "http://x"}}, w.Settings)
	compare(t, map[string]any{"list": []any{int64(3)}, "keep": int64(1)}, w.InitialState)
	compare(t, 5, w.Config.MaxSteps)
	compare(t, []*Node{
		{Name: "a", Body: &ActionBody{Uses: text("x.y"), With: tree(map[string]any{"p": int64(1), "r": int64(3)})}},
		{Name: "b", Body: &ActionBody{Uses: text("x.z"), With: tree(map[string]any{"uses": int64(2)})}, Retry: &Retry{MaxRetries: ref(1), Jitter: ref(0.5)}},
		{Name: "d", Body: &LuaBody{Code: text("x")}},
		{Name: "e"},
	}, w.Nodes)
	compare(t, []*Edge{
		{From: text(Start), To: []Text{text("a")}},
		{From: text("a"), To: []Text{text("b")}, When: ref(text("y"))},
		{From: text("b"), To: []Text{text(End)}, When: ref(text("z"))},
		{From: text("d"), To: []Text{text(End)}},
	}, w.Edges)

	at := func(file string, line, column int, path string) diag.Pos {
		return diag.Pos{File: file, Line: line, Column: column, Path: path}
	}
	for _, test := range []struct {
		name      string
		got, want diag.Pos
	}{
		{"kept", w.Nodes[1].Pos, at("flow.yaml", 7, 5, "nodes[1]")},
		{"replaced", w.Edges[1].When.Pos, at("over.yaml", 11, 28, "edges[1].when")},
		{"added", w.Nodes[2].Pos, at("over.yaml", 4, 5, "nodes[2]")},
		{"config", w.Nodes[0].Body.(*ActionBody).With.Pos, at("flow.yaml", 6, 11, "nodes[0].with")},
	} {
		if d := cmp.Diff(test.want, test.got); d != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, d)
		}
	}
}

func TestOverlayOnMapping(t *testing.T) {
	t.Parallel()
	w := load(t, `
-- flow.yaml --
nodes:
  a: {uses: x.y}
  b:
-- over.yaml --
nodes:
  - {name: b, run: x}
  - {name: c, run: y}
  - {name: a, __delete__: true}
`, Options{Overlays: []string{"over.yaml"}})
	compare(t, []*Node{{Name: "b", Body: &LuaBody{Code: text("x")}}, {Name: "c", Body: &LuaBody{Code: text("y")}}}, w.Nodes)
}

func TestConfigWithEscapedSurrogates(t *testing.T) {
	t.Parallel()
	w := load(t, "-- flow.yaml --\nnodes: [{name: a}]\n", Options{Config: "{\n\t\"variables\": {\"x\": \"\\ud83d\\ude00 \\/\"}\n}"})
	compare(t, map[string]any{"x": "\U0001F600 /"}, w.Variables)
}

func TestDigest(t *testing.T) {
	t.Parallel()
	const lib, sub = "\n-- lib.lua --\nreturn {}\n", "-- sub.yaml --\nnodes: [{name: x}]\n"
	const flow = "-- flow.yaml --\nimports: [{path: lib.lua}]\nnodes: [{name: a, uses: x.y, with: {p: 1, q: 2}}, {name: b, subgraph: sub.yaml}]\n"
	base := load(t, flow+lib+sub, Options{}).Digest
	tests := []struct {
		name, archive string
		same          bool
	}{
		{"again", flow + lib + sub, true},
		{"comments and order of keys", "-- flow.yaml --\n# comment\nnodes:\n  - uses: 'x.y'\n    name: a\n    with: {q: 2, p: 1}\n  - {name: b, subgraph: sub.yaml}\nimports: [path: lib.lua]\n" + lib + sub, true},
		{"words, settings and budget", "-- flow.yaml --\ndescription: new\nsettings: {llm: {model: m}}\nbudget: {steps: 5}\n" + strings.TrimPrefix(flow, "-- flow.yaml --\n") + lib + sub, true},
		{"another parameter", "-- flow.yaml --\nimports: [{path: lib.lua}]\nnodes: [{name: a, uses: x.y, with: {p: 1, q: 3}}, {name: b, subgraph: sub.yaml}]\n" + lib + sub, false},
		{"another type", "-- flow.yaml --\nimports: [{path: lib.lua}]\nnodes: [{name: a, uses: x.y, with: {p: 1, q: 2.0}}, {name: b, subgraph: sub.yaml}]\n" + lib + sub, false},
		{"order of nodes", "-- flow.yaml --\nimports: [{path: lib.lua}]\nnodes: [{name: b, subgraph: sub.yaml}, {name: a, uses: x.y, with: {p: 1, q: 2}}]\n" + lib + sub, false},
		{"another module", flow + "-- lib.lua --\nreturn {x = 1}\n" + sub, false},
		{"another subgraph", flow + lib + "-- sub.yaml --\nnodes: [{name: y}]\n", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := load(t, test.archive, Options{}).Digest; (got == base) != test.same {
				t.Errorf("digest is the same: %t, want %t", got == base, test.same)
			}
		})
	}
}

func TestDigestKeepsTheOrderOfMappedNodes(t *testing.T) {
	t.Parallel()
	digest := func(doc string) string { return parse(t, doc).Digest }
	if digest("nodes: {a: , b: }") == digest("nodes: {b: , a: }") {
		t.Error("the order of nodes does not count")
	}
	loop := "nodes:\n  l:\n    type: while_loop\n    condition: x\n    body: "
	if digest(loop+"{a: , b: }") == digest(loop+"{b: , a: }") {
		t.Error("the order of a loop's nodes does not count")
	}
}

func TestDigestIgnoresTheEnvironment(t *testing.T) {
	t.Parallel()
	digest := func(key string) string {
		w := load(t, "-- flow.yaml --\nsettings: {k: \"${KEY}\"}\nnodes: [{name: a}]\n", Options{LookupEnv: func(string) (string, bool) { return key, true }})
		return w.Digest
	}
	if digest("one") != digest("two") {
		t.Error("the digest depends on an environment variable")
	}
}

func TestOverlayOfCommentsChangesNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "# nothing yet\n", "---\n# nothing\n", "\n\n"} {
		w, diags := Load("flow.yaml", Options{Overlays: []string{"over.yaml"}, ReadFile: func(name string) ([]byte, error) {
			if name == "over.yaml" {
				return []byte(text), nil
			}
			return []byte("nodes: [{name: a}]"), nil
		}})
		if len(diags) > 0 || len(w.Nodes) != 1 {
			t.Errorf("%q: %v", text, diags)
		}
	}
}

func TestDeletedEdgeThatChainingPutsBackIsWarnedOf(t *testing.T) {
	t.Parallel()
	const flow = "nodes: [{name: a}, {name: b}, {name: c, goto: a}, {name: d}]\nedges: [{from: START, to: a}, {from: a, to: b}, {from: b, to: d}, {from: c, to: d}, {from: d, to: END}]\n"
	for edge, next := range map[string]string{
		"{from: a, to: b, __delete__: true}":                   "b",
		"{from: START, to: a, __delete__: true}":               "a",
		"{from: d, to: __end__, __delete__: true}":             "__end__",
		"{from: b, to: d, __delete__: true}":                   "", // c follows b
		"{from: c, to: d, __delete__: true}":                   "", // c has a goto
		"{from: a, to: b, __delete__: true}, {from: a, to: c}": "",
	} {
		_, diags := Load("flow.yaml", Options{Overlays: []string{"over.yaml"}, ReadFile: func(name string) ([]byte, error) {
			if name == "over.yaml" {
				return []byte("edges: [" + edge + "]"), nil
			}
			return []byte(flow), nil
		}})
		got := diags.Error()
		if (next != "") != strings.Contains(got, "changes nothing") || !strings.Contains(got, next) {
			t.Errorf("%s: %s", edge, got)
		}
	}
}

func TestPathsAreRelativeToTheFileTheyAreWrittenIn(t *testing.T) {
	t.Parallel()
	read := map[string]bool{}
	files := map[string]string{
		"dir/flow.yaml":      "imports: [{path: lib/m.lua}]\nnodes: [{name: a, subgraph: subs/s.yaml}]",
		"conf/over.yaml":     "nodes: [{name: b, subgraph: ../subs/t.yaml}, {name: a, subgraph: u.yaml}]",
		"dir/lib/m.lua":      "return {}",
		"subs/t.yaml":        "nodes: [{name: x, subgraph: inner/v.yaml}]",
		"subs/inner/v.yaml":  "nodes: [{name: x}]",
		"conf/u.yaml":        "nodes: [{name: x}]",
		"from/here/cli.yaml": "nodes: [{name: x}]",
	}
	_, diags := Load("dir/flow.yaml", Options{
		Overlays: []string{"conf/over.yaml"}, Config: `{"nodes": {"c": {"subgraph": "from/here/cli.yaml"}}}`,
		ReadFile: func(name string) ([]byte, error) {
			name = filepath.ToSlash(name)
			read[name] = true
			if text, ok := files[name]; ok {
				return []byte(text), nil
			}
			return nil, fs.ErrNotExist
		},
	})
	if len(diags) > 0 || len(read) != len(files) {
		t.Errorf("%v\nread %v", diags, read)
	}
}

package spec

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// parse reads a workflow that must be right.
func parse(t *testing.T, doc string) *Workflow {
	t.Helper()
	return load(t, "-- flow.yaml --\n"+doc, Options{})
}

// load reads flow.yaml of an archive that must be right.
func load(t *testing.T, archive string, o Options) *Workflow {
	t.Helper()
	o.ReadFile = archiveFiles(txtar.Parse([]byte(archive)).Files)
	w, diags := Load("flow.yaml", o)
	if len(diags) > 0 {
		t.Fatalf("unexpected diagnostics:\n%v", diags)
	}
	return w
}

// contents compares workflows without their places in the file.
var contents = cmp.Options{
	cmpopts.IgnoreTypes(diag.Pos{}),
	cmpopts.IgnoreFields(Tree{}, "Places", "root"),
	cmpopts.IgnoreFields(Text{}, "Block", "Cut", "written", "quote"),
	cmpopts.EquateEmpty(),
}

func text(s string) Text { return Text{Value: s} }

func ref[T any](v T) *T { return &v }

func tree(v any) *Tree { return &Tree{Value: v} }

func compare[T any](t *testing.T, want, got T) {
	t.Helper()
	if d := cmp.Diff(want, got, contents); d != "" {
		t.Errorf("differs (-want +got):\n%s", d)
	}
}

func TestTopLevel(t *testing.T) {
	t.Parallel()
	w := parse(t, `
name: demo
description: what it does
version: 1.10
state_schema:
  a: str
  b: {type: integer, default: 3, required: true, reducer: add, description: number of b}
  c: {default: null}
initial_state: {b: 5, t: 2024-01-01, y: yes, o: 0o17, big: 123456789012345678901234567890, f: 3.0, n: ~}
variables: {v: [1, two]}
imports:
  - {path: lib.lua, namespace: lib}
  - builtin: json
  - {plugin: llm, version: ">=1.2"}
  - plugin: web@1.0
nodes: [{name: a}]
config: {interrupt_before: [a], interrupt_after: [a], max_steps: 7, timeout_seconds: 1.5, max_concurrency: 4}
error_policy: {max_retries: 2, backoff_base_ms: 100, backoff_max_ms: 5000, backoff_multiplier: 1.5, jitter: false, on_failure: checkpoint_and_exit}
budget: {steps: 1, seconds: 2m, tokens: 3, usd: 0.5, tool_calls: 4}
-- lib.lua --
return {}
`)
	compare(t, "demo", w.Name)
	compare(t, "1.10", w.Version)
	compare(t, []Key{
		{Name: "a", Type: TypeString},
		{Name: "b", Type: TypeInt, Default: int64(3), HasDefault: true, Required: true, Reducer: ReduceAdd, Description: "number of b"},
		{Name: "c", Type: TypeAny, HasDefault: true},
	}, w.Schema)
	compare(t, map[string]any{"b": int64(5), "t": "2024-01-01", "y": "yes", "o": int64(15), "big": json.Number("123456789012345678901234567890"), "f": 3.0, "n": nil}, w.InitialState)
	compare(t, map[string]any{"v": []any{int64(1), "two"}}, w.Variables)
	compare(t, []Import{
		{Kind: ImportPath, Name: "lib.lua", Path: "lib.lua", Namespace: "lib", Code: []byte("return {}\n")},
		{Kind: ImportBuiltin, Name: "json"},
		{Kind: ImportPlugin, Name: "llm", Version: ">=1.2"},
		{Kind: ImportPlugin, Name: "web", Version: "1.0"},
	}, w.Imports)
	compare(t, Config{InterruptBefore: []Text{text("a")}, InterruptAfter: []Text{text("a")}, MaxSteps: 7, MaxItems: DefaultMaxItems, Timeout: 1500 * time.Millisecond, MaxConcurrency: 4}, w.Config)
	compare(t, ErrorPolicy{OnFailure: OnErrorCheckpoint, Retry: Retry{
		MaxRetries: ref(2), Base: ref(100 * time.Millisecond), Max: ref(5 * time.Second), Multiplier: ref(1.5), Jitter: ref(0.0),
	}}, w.Errors)
	compare(t, Budget{Steps: 1, Duration: 2 * time.Minute, Tokens: 3, USD: 0.5, ToolCalls: 4}, w.Budget)
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	w := load(t, "-- flow.yaml --\nnodes: {a: }\nconfig:\n", Options{})
	compare(t, "flow", w.Name)
	compare(t, Config{MaxSteps: DefaultMaxSteps, MaxItems: DefaultMaxItems}, w.Config)
	compare(t, []*Node{{Name: "a"}}, w.Nodes)
}

func TestNodes(t *testing.T) {
	t.Parallel()
	lua := func(code string) *LuaBody { return &LuaBody{Code: text(code)} }
	tests := []struct {
		name, node string
		want       *Node
	}{
		{"passthrough", `{name: a}`, &Node{Name: "a"}},
		{"id", `{id: a, description: d, metadata: {k: 1}}`, &Node{Name: "a", Description: "d", Metadata: map[string]any{"k": int64(1)}}},
		{
			"uses", `{name: a, uses: x.y, with: {p: "{{ q }}"}, output: r}`,
			&Node{Name: "a", Body: &ActionBody{Uses: text("x.y"), With: tree(map[string]any{"p": "{{ q }}"}), Output: &Output{Key: "r"}}},
		},
		{
			"aliases", `{name: a, action: x.y, params: {p: 1}, store_as: {k: "{{ result.f }}"}}`,
			&Node{Name: "a", Body: &ActionBody{Uses: text("x.y"), With: tree(map[string]any{"p": int64(1)}), Output: &Output{Fields: []OutputField{{Key: "k", Value: tree("{{ result.f }}")}}}}},
		},
		{
			"config is with", `{name: a, uses: x.y, config: {p: 1}}`,
			&Node{Name: "a", Body: &ActionBody{Uses: text("x.y"), With: tree(map[string]any{"p": int64(1)})}},
		},
		{
			"inline parameters", `{name: a, action: x.y, url: u, input: [1], x-mine: 1, timeout_seconds: 3}`,
			&Node{Name: "a", Timeout: 3 * time.Second, Body: &ActionBody{
				Uses: text("x.y"), Inline: true,
				With: tree(map[string]any{"url": "u", "input": []any{int64(1)}}), Own: tree(map[string]any{"timeout_seconds": int64(3)}),
			}},
		},
		{
			"a parameter params", `{name: a, action: x.y, datalog: "?[x] := x = $y", params: {y: 1}}`,
			&Node{Name: "a", Body: &ActionBody{Uses: text("x.y"), Inline: true, With: tree(map[string]any{"datalog": "?[x] := x = $y", "params": map[string]any{"y": int64(1)}})}},
		},
		{"no parameters", `{name: a, action: x.y}`, &Node{Name: "a", Body: &ActionBody{Uses: text("x.y"), Inline: true}}},
		{"run", `{name: a, run: "return {}", language: lua, output: k}`, &Node{Name: "a", Body: &LuaBody{Code: text("return {}"), Output: &Output{Key: "k"}}}},
		{"script", `{name: a, script: x}`, &Node{Name: "a", Body: lua("x")}},
		{"lua", `{name: a, lua: x}`, &Node{Name: "a", Body: lua("x")}},
		{
			"steps", `{name: a, steps: [{run: x}, {name: s, uses: x.y, if: c, on_error: continue}, {steps: [{run: y}]}]}`,
			&Node{Name: "a", Body: &StepsBody{Steps: []*Node{
				{Name: "0", Body: lua("x")},
				{Name: "s", If: ref(text("c")), OnError: OnErrorContinue, Body: &ActionBody{Uses: text("x.y")}},
				{Name: "2", Body: &StepsBody{Steps: []*Node{{Name: "0", Body: lua("y")}}}},
			}}},
		},
		{
			"loop", `{name: a, type: while_loop, condition: x < 3, max_iterations: 5, on_max: stop, body: [{name: b, goto: c}, {name: c}], output: o}`,
			&Node{Name: "a", Body: &LoopBody{Condition: text("x < 3"), MaxIterations: 5, StopAtMax: true, Output: &Output{Key: "o"}, Nodes: []*Node{
				{Name: "b", Goto: []Rule{{To: text("c")}}}, {Name: "c"},
			}}},
		},
		{"loop of a mapping", `{name: a, type: while_loop, condition: true, body: {b: {run: x}}}`, &Node{Name: "a", Body: &LoopBody{Condition: text("true"), MaxIterations: 1000, Nodes: []*Node{{Name: "b", Body: lua("x")}}}}},
		{
			"map", `{name: a, type: dynamic_parallel, items: "{{ l }}", action: {action: x.y, params: {p: 1}, store_as: r}, fan_in: j}`,
			&Node{Name: "a", Body: &MapBody{Items: tree("{{ l }}"), ItemVar: "item", IndexVar: "index", FanIn: ref(text("j")), Do: &ActionBody{Uses: text("x.y"), With: tree(map[string]any{"p": int64(1)}), Output: &Output{Key: "r"}}}},
		},
		{
			"map of steps", `{name: a, type: dynamic_parallel, items: [1, 2], item_var: i, index_var: n, max_concurrency: 2, fail_fast: true, fan_in: true, steps: [{run: x}]}`,
			&Node{Name: "a", FanIn: true, Body: &MapBody{Items: tree([]any{int64(1), int64(2)}), ItemVar: "i", IndexVar: "n", MaxConcurrency: 2, FailFast: true, Do: &StepsBody{Steps: []*Node{{Name: "0", Body: lua("x")}}}}},
		},
		{"routing", `{name: a, goto: [{if: x > 1, to: END}, {to: b}], fallback: c, on_error: fallback, interrupt: before, fan_in: true}`, &Node{
			Name: "a", Goto: []Rule{{If: ref(text("x > 1")), To: text(End)}, {To: text("b")}}, Fallback: ref(text("c")), OnError: OnErrorFallback, InterruptBefore: true, FanIn: true,
		}},
		{"goto", `{name: a, goto: END, interrupt: after}`, &Node{Name: "a", Goto: []Rule{{To: text(End)}}, InterruptAfter: true}},
		{"retry", `{name: a, retry: {max_retries: 0, base_delay: 0.5, max_delay: 30s, jitter: true, retry_on: [timeout]}, timeout_seconds: 1m30s}`, &Node{
			Name: "a", Timeout: 90 * time.Second, Retry: &Retry{MaxRetries: ref(0), Base: ref(500 * time.Millisecond), Max: ref(30 * time.Second), Jitter: ref(0.5), RetryOn: []string{"timeout"}},
		}},
		{"parallel", `{name: a, parallel: {timeout_seconds: 5, fail_fast: false, max_concurrency: 3, retry: {max_retries: 1}, circuit_breaker: {failure_threshold: 3, reset_timeout: 30, half_open_max_calls: 2}}}`, &Node{
			Name: "a", Parallel: &Parallel{
				Timeout: 5 * time.Second, FailFast: ref(false), MaxConcurrency: 3, Retry: &Retry{MaxRetries: ref(1)},
				Breaker: &Breaker{FailureThreshold: 3, ResetTimeout: 30 * time.Second, HalfOpenMaxCalls: 2},
			},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := parse(t, "nodes:\n  - "+test.node+"\n")
			compare(t, []*Node{test.want}, w.Nodes)
		})
	}
}

func TestEdges(t *testing.T) {
	t.Parallel()
	texts := func(names ...string) (list []Text) {
		for _, n := range names {
			list = append(list, text(n))
		}
		return list
	}
	tests := []struct {
		name, edge string
		want       *Edge
	}{
		{"plain", `{from: START, to: END}`, &Edge{From: text(Start), To: texts(End)}},
		{"when", `{from: a, to: b, when: "{{ x }}"}`, &Edge{From: text("a"), To: texts("b"), When: ref(text("{{ x }}"))}},
		{"when false", `{from: a, to: b, when: False}`, &Edge{From: text("a"), To: texts("b"), When: ref(text("false"))}},
		{"condition", `{from: a, condition: return 1, targets: {yes: b, 1: END}, default: b}`, &Edge{
			From: text("a"), Condition: ref(text("return 1")), Targets: []Target{{Result: "yes", To: text("b")}, {Result: "1", To: text(End)}}, Default: ref(text("b")),
		}},
		{"branch", `{from: a, to: b, type: parallel, fan_in: j}`, &Edge{From: text("a"), To: texts("b"), Parallel: true, FanIn: ref(text("j"))}},
		{"parallel", `{from: a, parallel: [b, c], fan_in: j}`, &Edge{From: text("a"), To: texts("b", "c"), Parallel: true, FanIn: ref(text("j"))}},
		{"to list", `{from: a, to: [b, c]}`, &Edge{From: text("a"), To: texts("b", "c"), Parallel: true}},
		{"to list of one", `{from: a, to: [b]}`, &Edge{From: text("a"), To: texts("b")}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := parse(t, "nodes: [{name: a}]\nedges:\n  - "+test.edge+"\n")
			compare(t, []*Edge{test.want}, w.Edges)
		})
	}
}

func TestSubgraphs(t *testing.T) {
	t.Parallel()
	w := load(t, `
-- flow.yaml --
nodes:
  - {name: a, subgraph: sub/one.yaml, input: {x: "{{ state.x }}"}, output: {y: "{{ result.y }}"}}
  - {name: b, type: dynamic_parallel, items: "{{ l }}", subgraph: ./sub/one.yaml, input: {x: 1}, output: all}
-- sub/one.yaml --
nodes: [{name: inner, subgraph: two.yaml}]
-- sub/two.yaml --
nodes: [{name: innermost}]
`, Options{})
	one := w.Nodes[0].Body.(*SubgraphBody)
	compare(t, tree(map[string]any{"x": "{{ state.x }}"}), one.Input)
	compare(t, filepath.Join("sub", "one.yaml"), one.Workflow.File)
	compare(t, "sub", one.Workflow.Dir)
	two := one.Workflow.Nodes[0].Body.(*SubgraphBody).Workflow
	compare(t, []*Node{{Name: "innermost"}}, two.Nodes)
	each := w.Nodes[1].Body.(*MapBody)
	compare(t, &Output{Key: "all"}, each.Output)
	if each.Do.(*SubgraphBody).Workflow != one.Workflow {
		t.Error("one file was read twice")
	}
}

// TestManySubgraphs would not end if a file used twice were read twice.
func TestManySubgraphs(t *testing.T) {
	t.Parallel()
	var archive strings.Builder
	archive.WriteString("-- flow.yaml --\nnodes: [{name: a, subgraph: fa.yaml}]\n")
	for i := range 24 {
		a, b := string(rune('a'+i)), string(rune('b'+i))
		archive.WriteString("-- f" + a + ".yaml --\nnodes: [{name: a, subgraph: f" + b + ".yaml}, {name: b, subgraph: f" + b + ".yaml}]\n")
	}
	archive.WriteString("-- f" + string(rune('a'+24)) + ".yaml --\nnodes: [{name: a}]\n")
	load(t, archive.String(), Options{})
}

func TestSettings(t *testing.T) {
	t.Parallel()
	env := map[string]string{"KEY": "k3y", "EMPTY": "", "BRACES": "${KEY}"}
	w := load(t, `
-- flow.yaml --
settings:
  llm: {key: "${KEY}", both: "a ${KEY} b ${KEY}", url: "${URL:-http://x:1/?a=b}", empty: "${EMPTY}", instead: "${EMPTY:-d}", none: "${URL:-}"}
  list: ["$${KEY} ${KEY}", $KEY, 3, "${BRACES}"]
variables: {v: "${KEY}"}
nodes: [{name: a, uses: x.y, with: {p: "${KEY}"}}]
`, Options{LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
	compare(t, map[string]any{
		"llm":  map[string]any{"key": "k3y", "both": "a k3y b k3y", "url": "http://x:1/?a=b", "empty": "", "instead": "d", "none": ""},
		"list": []any{"${KEY} k3y", "$KEY", int64(3), "${KEY}"},
	}, w.Settings)
	compare(t, map[string]any{"v": "${KEY}"}, w.Variables)
	compare(t, tree(map[string]any{"p": "${KEY}"}), w.Nodes[0].Body.(*ActionBody).With)
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	w := parse(t, `nodes:
  - name: a
    run: |
      local x = 1

        return x
  - name: b
    uses: "x.y"
    with: {a: ['é{{ x }}', &anchor "q"], "c d": plain}
`)
	code := w.Nodes[0].Body.(*LuaBody).Code
	call := w.Nodes[1].Body.(*ActionBody)
	at := func(line, column int, path string) diag.Pos {
		return diag.Pos{File: "flow.yaml", Line: line, Column: column, Path: path}
	}
	tests := []struct {
		name      string
		got, want diag.Pos
	}{
		{"block", code.Pos, at(4, 7, "nodes[0].run")},
		{"inside a block", code.At(3, 3), at(6, 9, "nodes[0].run")},
		{"quoted", call.Uses.Pos, at(8, 12, "nodes[1].uses")},
		{"single quoted", call.With.Places["a[0]"].Pos, at(9, 17, "nodes[1].with.a[0]")},
		{"behind an anchor", call.With.Places["a[1]"].Pos, at(9, 37, "nodes[1].with.a[1]")},
		{"key with a space", call.With.Places[`["c d"]`].Pos, at(9, 49, `nodes[1].with["c d"]`)},
		{"node", w.Nodes[1].Pos, at(7, 5, "nodes[1]")},
	}
	for _, test := range tests {
		if d := cmp.Diff(test.want, test.got); d != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, d)
		}
	}
}

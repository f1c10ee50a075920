package host_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// files writes a workflow with the files it refers to and loads main.yaml.
func files(t *testing.T, contents map[string]string, more ...tea.Action) *session {
	t.Helper()
	dir := t.TempDir()
	for name, text := range contents {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := newCounter()
	h, err := host.New(host.Options{Actions: append(more, c.action())})
	if err != nil {
		t.Fatal(err)
	}
	wf, err := h.Load(filepath.Join(dir, "main.yaml"), host.LoadOptions{})
	if err != nil {
		t.Fatalf("load:\n%v", err)
	}
	t.Cleanup(func() { wf.Close(); h.Close() })
	return &session{t: t, wf: wf, dir: filepath.Join(dir, "runs"), c: c}
}

const sub = `
state_schema: {n: {type: int, required: true}}
variables: {factor: 10}
nodes:
  - {name: hit, uses: count.hit, with: {name: "s{{ state.n }}"}, output: last}
  - {name: ask, interrupt: before, run: "return {m = state.n * variables.factor}"}
`

func TestSubgraphInterruptsCarryThePath(t *testing.T) {
	t.Parallel()
	s := files(t, map[string]string{"sub.yaml": sub, "main.yaml": `
nodes:
  - name: inner
    subgraph: sub.yaml
    input: {n: "{{ state.start }}"}
    output: {m: "{{ result.m }}", extra: "{{ result.extra }}"}
  - {name: after, run: "return {twice = state.m * 2}"}
`})
	res := s.run(host.RunOptions{Input: map[string]any{"start": 4}})
	wantStatus(t, res, flow.Waiting, "inner/ask:before")
	res = s.resume(res.RunID, host.RunOptions{Answers: map[string]any{"inner/ask:before": map[string]any{"extra": "x"}}})
	wantState(t, res, map[string]any{"start": int64(4), "m": int64(40), "extra": "x", "twice": int64(80)})
	s.wantCalls(map[string]int{"s4": 1})
}

func TestMapOverSubgraphsWithInterrupts(t *testing.T) {
	t.Parallel()
	s := files(t, map[string]string{"sub.yaml": sub, "main.yaml": `
nodes:
  - name: each
    type: dynamic_parallel
    items: [1, 2, 3]
    subgraph: sub.yaml
    input: {n: "{{ item }}"}
    fan_in: join
  - name: join
    run: |
      local out = {}
      for i, p in ipairs(parallel_results) do out[i] = p.state.m end
      return {out = out}
`})
	res := s.run(host.RunOptions{})
	wantStatus(t, res, flow.Waiting, "each[0]/ask:before", "each[1]/ask:before", "each[2]/ask:before")
	res = s.resume(res.RunID, host.RunOptions{Answers: map[string]any{"each[1]/ask:before": true}})
	wantStatus(t, res, flow.Waiting, "each[0]/ask:before", "each[2]/ask:before")
	res = s.resume(res.RunID, host.RunOptions{})
	wantState(t, res, map[string]any{"out": []any{int64(10), int64(20), int64(30)}})
	s.wantCalls(map[string]int{"s1": 1, "s2": 1, "s3": 1})
}

func TestWorkflowRunIsResumedInside(t *testing.T) {
	t.Parallel()
	s := files(t, map[string]string{"sub.yaml": sub, "main.yaml": `
nodes:
  - name: call
    run: return {r = tea.action("workflow.run", {path = "sub.yaml", input = {n = 7}}).state.m}
`})
	res := s.run(host.RunOptions{})
	if res.Status != flow.Waiting || len(res.Pending) != 1 || !strings.HasPrefix(res.Pending[0].ID, "call!workflow.run:") {
		t.Fatalf("status = %s %v", res.Status, res.Pending)
	}
	res = s.resume(res.RunID, host.RunOptions{})
	wantState(t, res, map[string]any{"r": int64(70)})
	s.wantCalls(map[string]int{"s7": 1})
}

// Each attempt of a node that runs a workflow runs all of it. What an earlier
// attempt recorded inside does not count.
func TestWorkflowRunIsResumedInItsLastAttempt(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]string{
		"action": `uses: workflow.run, with: {path: sub.yaml}, output: {r: "{{ result.state }}"}`,
		"lua":    `run: "return {r = tea.action('workflow.run', {path = 'sub.yaml'}).state}"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ticks atomic.Int64
			tick := tea.Action{Name: "test.tick", Handle: func(context.Context, *tea.Request) (*tea.Response, error) {
				return tea.Respond(ticks.Add(1)), nil
			}}
			s := files(t, map[string]string{"sub.yaml": `
nodes:
  - {name: a, uses: test.tick, output: n}
  - {name: ask, if: "{{ state.n == 3 }}", interrupt: before, run: "return {asked = true}"}
  - name: b
    uses: count.hit
    with: {name: "b{{ state.n }}"}
    output: {}
    goto: [{if: "{{ state.n < 3 }}", to: a}, {to: __end__}]
`, "main.yaml": `
nodes:
  - {name: call, retry: {max_retries: 1, backoff_base_ms: 1, retry_on: [internal_error]}, ` + call + `}
`}, tick)
			s.c.fail["b2"] = true
			res := s.run(host.RunOptions{})
			if res.Status != flow.Waiting || len(res.Pending) != 1 {
				t.Fatalf("status = %s %v, %v", res.Status, res.Pending, res.Err)
			}
			s.wantCalls(map[string]int{"b1": 1})
			res = s.resume(res.RunID, host.RunOptions{})
			wantState(t, res, map[string]any{"r": map[string]any{"n": int64(3), "asked": true}})
			s.wantCalls(map[string]int{"b1": 1, "b3": 1})
		})
	}
}

func TestWorkflowRunIsTriedAgainFromItsBeginning(t *testing.T) {
	t.Parallel()
	s := files(t, map[string]string{"sub.yaml": `
nodes:
  - {name: a, uses: count.hit, with: {name: a}, output: n}
  - {name: ask, interrupt: before, run: "return {}"}
  - {name: b, uses: count.hit, with: {name: b}, output: last}
`, "main.yaml": `
nodes:
  - {name: call, retry: {max_retries: 1, backoff_base_ms: 1, retry_on: [internal_error]}, uses: workflow.run, with: {path: sub.yaml}, output: {}}
`})
	res := s.run(host.RunOptions{})
	wantStatus(t, res, flow.Waiting, "call/ask:before")
	s.c.fail["b"] = true
	res = s.resume(res.RunID, host.RunOptions{})
	wantStatus(t, res, flow.Waiting, "call~2/ask:before")
	res = s.resume(res.RunID, host.RunOptions{})
	wantStatus(t, res, flow.Done)
	s.wantCalls(map[string]int{"a": 2, "b": 1})
}

func TestLuaModuleActions(t *testing.T) {
	t.Parallel()
	s := files(t, map[string]string{"lib.lua": `
local M = {}
function M.register_actions(registry)
  registry.scale = function(state, params)
    tea.action("count.hit", {name = "from lua"})
    return {scaled = params.by * state.n}
  end
end
return M
`, "main.yaml": `
imports: [{path: lib.lua, namespace: lib}, {path: lib.lua, namespace: again}]
nodes:
  - {name: a, uses: lib.scale, with: {by: 3}}
  - {name: b, run: "return {b = tea.action('again.scale', {by = 5}).scaled}"}
`})
	res := s.run(host.RunOptions{Input: map[string]any{"n": 2}})
	wantState(t, res, map[string]any{"n": int64(2), "scaled": int64(6), "b": int64(10)})
	s.wantCalls(map[string]int{"from lua": 2})
}

// Actions that call each other without an end are stopped before they have
// used up the machine.
func TestActionThatCallsItself(t *testing.T) {
	t.Parallel()
	s := files(t, map[string]string{
		"m.lua":     `return {register_actions = function(r) r.again = function(state, p) return tea.action("m.again", {}) end end}`,
		"main.yaml": "imports: [{path: m.lua, namespace: m}]\nnodes: [{name: a, uses: m.again}]",
	})
	res := s.run(host.RunOptions{})
	if res.Status != flow.Failed || !strings.Contains(res.Err.Error(), "actions call each other more than 64 deep") {
		t.Errorf("got %s, %.300v", res.Status, res.Err)
	}
}

func TestFallbackContinuesLikeTheFailedNode(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
nodes:
  - {name: a, uses: json.parse, with: {text: "{"}, fallback: b}
  - {name: c, run: "return {c = state.b}"}
  - {name: b, run: "return {b = true}"}
edges:
  - {from: a, to: c}
  - {from: c, to: END}
`)
	res := s.run(host.RunOptions{})
	wantState(t, res, map[string]any{"b": true, "c": true})
}

func TestLastFallbackDoesNotEndTheRunEarly(t *testing.T) {
	t.Parallel()
	res := run(t, `
nodes:
  - {name: a, uses: json.parse, with: {text: "{"}, fallback: b}
  - {name: c, run: "return {c = state.b}"}
  - {name: d, goto: END}
  - {name: b, run: "return {b = true}"}
`, host.RunOptions{})
	wantState(t, res, map[string]any{"b": true, "c": true})
}

func TestFallbackThatIsAlsoNextRunsOnce(t *testing.T) {
	t.Parallel()
	for _, routing := range []string{"", ", goto: b"} {
		s := newSession(t, `
nodes:
  - {name: a, uses: json.parse, with: {text: "{"}, fallback: b`+routing+`}
  - {name: b, uses: count.hit, with: {name: b}}
  - {name: c, run: "return {c = true}"}
`)
		wantState(t, s.run(host.RunOptions{}), map[string]any{"name": "b", "c": true})
		s.wantCalls(map[string]int{"b": 1})
	}
}

func TestRetryTimeoutCoversAllAttempts(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"node": `
nodes:
  - {name: a, run: "error('no')", retry: {max_retries: 1000000, base_delay: 0, retry_on: [internal_error], timeout_seconds: 0.1}}
`,
		"branch": `
config: {max_steps: 1000000, parallel: {retry: {max_retries: 1000000, base_delay: 0, retry_on: [internal_error], timeout_seconds: 0.1}}}
nodes:
  - {name: start}
  - {name: a, run: "error('no')"}
  - {name: join}
edges: [{from: start, parallel: [a], fan_in: join}]
`,
	} {
		res := run(t, text, host.RunOptions{})
		if res.Status != flow.Failed || !strings.Contains(res.Err.Error(), "together took longer than retry.timeout_seconds (100ms)") {
			t.Errorf("%s: got %s, %v", name, res.Status, res.Err)
		}
	}
}

func TestActionsCanMaskSecrets(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
nodes:
  - name: hide
    uses: secrets.mask
    with: {value: {text: "Bearer {{ secrets.key }}", n: 9007199254740993}}
    output: {hidden: "{{ result.value }}"}
`)
	res := s.run(host.RunOptions{Secrets: map[string]any{"key": "sk-very-secret"}})
	wantState(t, res, map[string]any{"hidden": map[string]any{"text": "Bearer ***", "n": int64(9007199254740993)}})
}

func TestSecretsAreMaskedAndSealed(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
nodes:
  - {name: a, run: "return {header = 'Bearer ' .. tea.action('secrets.get', {name = 'key'}).value}"}
  - {name: stop, interrupt: before, run: "tea.log('info', 'it is ' .. state.header); return {same = state.header == 'Bearer ' .. tea.action('secrets.get', {name = 'key'}).value}"}
`)
	secrets := map[string]any{"key": "sk-very-secret"}
	var seen strings.Builder
	events := func(e flow.Event) {
		raw, err := e.MarshalJSON()
		if err != nil {
			t.Error(err)
		}
		seen.Write(raw)
	}
	res := s.run(host.RunOptions{Secrets: secrets, Events: events})
	wantStatus(t, res, flow.Waiting, "stop:before")
	raw, err := os.ReadFile(res.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "sk-very-secret") {
		t.Error("the secret is in the checkpoint")
	}
	if _, err := s.wf.Resume(t.Context(), res.RunID, host.RunOptions{CheckpointDir: s.dir}); err == nil || !strings.Contains(err.Error(), `"key"`) {
		t.Errorf("resume without the secret: %v", err)
	}
	res = s.resume(res.RunID, host.RunOptions{Secrets: secrets, Events: events})
	if res.State["same"] != true {
		t.Errorf("the secret did not come back: %v", res.State)
	}
	if strings.Contains(seen.String(), "sk-very-secret") || !strings.Contains(seen.String(), "it is Bearer ***") {
		t.Errorf("events: %s", seen.String())
	}
}

func TestForkCanTakeAnotherRoute(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
nodes:
  - {name: a, uses: count.hit, with: {name: a}, output: a}
  - {name: b, run: "return {v = state.given or 'none'}"}
`)
	first := s.run(host.RunOptions{})
	runs, err := checkpoints.Open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	contents, err := runs.Show(first.RunID)
	if err != nil {
		t.Fatal(err)
	}
	at := uint64(0)
	for _, rec := range contents.Records {
		if rec.Path == "a" {
			at = rec.Seq
		}
	}
	res, err := s.wf.Fork(t.Context(), first.RunID, at, host.RunOptions{CheckpointDir: s.dir, Input: map[string]any{"given": "fork"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("fork", res.State["v"]); diff != "" {
		t.Error(diff)
	}
	s.wantCalls(map[string]int{"a": 1})
}

func TestRequireFindsImportedModules(t *testing.T) {
	t.Parallel()
	s := files(t, map[string]string{
		"m.lua":     `return {double = function(n) return 2 * n end, register_actions = function() end}`,
		"main.yaml": "imports: [{path: m.lua, namespace: m}]\nnodes: [{name: a, run: \"return {n = require('m').double(21)}\"}]\n",
	})
	wantState(t, s.run(host.RunOptions{}), map[string]any{"n": int64(42)})
}

func TestModulesRequireEachOtherInAnyOrder(t *testing.T) {
	t.Parallel()
	a := "local b = require('b')\nreturn {base = 20, register_actions = function(r)\n r.sum = function(state, p) return {sum = p.n + b.one() + require('c').two} end\nend}"
	b := "local c = require('c')\nreturn {one = function() return c.two - 1 end, register_actions = function(r) r.own = function() return {} end end}"
	for _, imports := range []string{"{path: lib/a.lua}, {path: lib/b.lua}, {path: lib/c.lua}", "{path: lib/c.lua}, {path: lib/b.lua}, {path: lib/a.lua}"} {
		s := files(t, map[string]string{
			"lib/a.lua": a, "lib/b.lua": b, "lib/c.lua": "return {two = 2}",
			"main.yaml": "imports: [" + imports + "]\nnodes: [{name: a, uses: a.sum, with: {n: 39}}]\n",
		})
		wantState(t, s.run(host.RunOptions{}), map[string]any{"sum": int64(42)})
	}
}

func TestCycleOfModulesIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	a, b := write("a.lua", "return {x = require('b')}"), write("b.lua", "local x = 1\nreturn {x = require('a')}")
	flow := write("flow.yaml", "imports: [{path: a.lua}, {path: b.lua}]\nnodes: [{name: n}]\n")
	h, err := host.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	got := h.Validate(flow, host.LoadOptions{}).Error()
	for _, want := range []string{b + ":2: modules require each other: " + a + " -> " + b + " -> " + a, a + ":1: modules require each other: " + b + " -> " + a + " -> " + b} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
}

func TestImportOfTheWrongKindIsRefused(t *testing.T) {
	t.Parallel()
	h, err := host.New(host.Options{Bundles: []*tea.Bundle{{Name: "mine", Version: "1.4.0", Actions: []tea.Action{host.Func("mine.own", "Owns.", nil)}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	for imports, want := range map[string]string{
		"{builtin: json, namespace: j}":                      "",
		"{plugin: mine, version: '>=1.2, <2', namespace: m}": "",
		"{plugin: mine@^1.4}":                                "",
		"{plugin: mine, version: '>=2'}":                     "plugin mine: ",
		"{plugin: json}":                                     `"json" is not a plugin but a builtin`,
		"{builtin: mine}":                                    `"mine" is not a builtin but a plugin`,
		"{builtin: web}":                                     `to import a plugin, write plugin: web, and put tea-plugin-web in a plugin directory`,
		"{builtin: jsn}":                                     `there is no builtin "jsn"`,
	} {
		wf, err := h.Parse("flow.yaml", []byte("imports: ["+imports+"]\nnodes: [{name: n}]\n"), host.LoadOptions{})
		if err == nil {
			t.Cleanup(func() { wf.Close() })
		}
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", imports, got, want)
		}
	}
}

func TestSkippedNodeDoesNotInterrupt(t *testing.T) {
	t.Parallel()
	s := newSession(t, `nodes: [{name: a, if: "false", interrupt: before}, {name: b, run: "return {b = 1}"}]`)
	wantState(t, s.run(host.RunOptions{}), map[string]any{"b": int64(1)})
}

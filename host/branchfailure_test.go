package host_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// failingFan is a fan-out with one branch that fails, and the fan-in node j.
const failingFan = `
nodes:
  - {name: a}
  - {name: ok, run: "return {x = 1}"}
  - {name: bad, uses: json.parse, with: {text: "{"}}
  - JOIN
edges: [{from: a, parallel: [ok, bad], fan_in: j}]
`

// failingMap is the same with a map.
const failingMap = `
nodes:
  - {name: each, type: dynamic_parallel, items: ["1", "{", "2"], action: {uses: json.parse, with: {text: "{{ item }}"}}, fan_in: j}
  - JOIN
`

func TestUnhandledBranchFailureFailsTheRun(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, join string
		looks      bool
	}{
		{"empty", "{name: j}", false},
		{"Lua without them", "{name: j, run: 'return {done = true}'}", false},
		{"Lua", "{name: j, run: 'return {n = #parallel_results}'}", true},
		{"Lua by a path", "{name: j, run: 'return {ok = parallel_results[1].success}'}", true},
		{"Lua by _G", `{name: j, run: 'return {n = #_G["parallel_results"]}'}`, true},
		{"a comment", "{name: j, run: \"-- parallel_results\\nreturn {}\"}", false},
		{"a text", `{name: j, run: 'return {s = "parallel_results"}'}`, false},
		{"a local of that name", "{name: j, run: 'local parallel_results = {} return {n = #parallel_results}'}", false},
		{"a key of the state", "{name: j, run: 'return {n = state.parallel_results}'}", false},
		{"template of a parameter", `{name: j, uses: json.stringify, with: {data: "{{ parallel_results | length }}"}}`, true},
		{"template of the state's key", `{name: j, uses: json.stringify, with: {data: "{{ state.parallel_results }}"}}`, false},
		{"output", `{name: j, uses: json.stringify, with: {data: 1}, output: {n: "{{ parallel_results | length }}"}}`, true},
		{"guard", `{name: j, if: "#parallel_results == 0", run: 'return {}'}`, true},
		{"guard in Jinja", `{name: j, if: "{{ parallel_results | length == 0 }}", run: 'return {}'}`, true},
		{"skipped", `{name: j, if: "state.never", run: 'return {n = #parallel_results}'}`, false},
		{"step", `{name: j, steps: [{run: 'return {}'}, {run: 'return {n = #parallel_results}'}]}`, true},
		{"no step", `{name: j, steps: [{run: 'return {}'}, {run: 'return {n = 1}'}]}`, false},
		{"items of a map", `{name: j, type: dynamic_parallel, items: "{{ parallel_results }}", steps: [{run: 'return {}'}]}`, true},
	}
	for _, test := range tests {
		for kind, text := range map[string]string{"fan-out": failingFan, "map": failingMap} {
			t.Run(test.name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				res := run(t, strings.Replace(text, "JOIN", test.join, 1), host.RunOptions{})
				if test.looks {
					wantStatus(t, res, flow.Done)
				} else if wantStatus(t, res, flow.Failed); tea.AsError(res.Err).Type != tea.ValidationError {
					t.Errorf("err = %v", res.Err)
				}
				if res.FailedBranches != 1 || len(res.Failures) != 1 || !res.Failures[0].Branch {
					t.Errorf("%d failed branches: %v", res.FailedBranches, res.Failures)
				}
			})
		}
	}
}

func TestFailedBranchesAreListedAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	var others sync.WaitGroup
	others.Add(2)
	fail := tea.NewAction("test.fail", "Fails, the first one after the others.", func(_ context.Context, _ *tea.Request, p struct {
		Name string `json:"name"`
	},
	) (map[string]any, error) {
		if p.Name == "z" {
			others.Wait()
		} else {
			others.Done()
		}
		return nil, tea.Errorf(tea.InternalError, "%s", p.Name)
	})
	res := run(t, `
nodes:
  - {name: start}
  - {name: z, uses: test.fail, with: {name: z}}
  - {name: b, uses: test.fail, with: {name: b}}
  - {name: a, uses: test.fail, with: {name: a}}
  - {name: j, run: "return {n = #parallel_results}"}
edges: [{from: start, parallel: [z, b, a], fan_in: j}]
`, host.RunOptions{}, fail)
	var got []string
	for _, f := range res.Failures {
		if f.Branch {
			got = append(got, f.Message)
		}
	}
	if diff := cmp.Diff([]string{"z", "b", "a"}, got); diff != "" {
		t.Errorf("failed branches (-want +got):\n%s", diff)
	}
}

func TestModuleThatReadsResultsHandlesTheirFailures(t *testing.T) {
	t.Parallel()
	for name, looks := range map[string]bool{"reads": true, "other": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := files(t, map[string]string{
				"reads.lua": "return {count = function() return #parallel_results end}",
				"other.lua": "return {count = function() return 0 end}",
				"main.yaml": "imports: [{path: reads.lua, namespace: reads}, {path: other.lua, namespace: other}]" +
					strings.Replace(failingFan, "JOIN", "{name: j, run: \"return {n = require('"+name+"').count()}\"}", 1),
			})
			res := s.run(host.RunOptions{})
			if looks {
				wantStatus(t, res, flow.Done)
			} else {
				wantStatus(t, res, flow.Failed)
			}
		})
	}
}

// The inner fan-out ends where the outer one does, which sees the outer
// branches only: the failure is one of them.
func TestInnerBranchThatEndsAtTheOuterJoinIsSeenThere(t *testing.T) {
	t.Parallel()
	res := run(t, `
nodes:
  - {name: a}
  - {name: b}
  - {name: c}
  - {name: ok}
  - {name: bad, uses: json.parse, with: {text: "{"}}
  - name: j
    run: |
      local out = {}
      for i, r in ipairs(parallel_results) do out[i] = r.branch .. " " .. tostring(r.success) end
      return {out = out}
edges: [{from: a, parallel: [b, c], fan_in: j}, {from: b, parallel: [ok, bad], fan_in: j}]
`, host.RunOptions{})
	wantStatus(t, res, flow.Done)
	if diff := cmp.Diff([]any{"b false", "c true"}, res.State["out"]); diff != "" {
		t.Error(diff)
	}
}

func TestFirstFailureIsKeptWithLaterOnes(t *testing.T) {
	t.Parallel()
	s := newSession(t, `
nodes:
  - {name: load, uses: json.parse, with: {text: "{"}, on_error: continue}
  - {name: use, run: "error('nothing was loaded')"}
`)
	check := func(res *flow.Result) {
		t.Helper()
		wantStatus(t, res, flow.Failed)
		if len(res.Failures) != 1 || res.Failures[0].Path != "load" || res.Failures[0].Type != tea.ValidationError || res.Failures[0].Branch {
			t.Errorf("failures = %v", res.Failures)
		}
	}
	res := s.run(host.RunOptions{})
	check(res)
	check(s.resume(res.RunID, host.RunOptions{}))
}

// An action of a linked bundle that ends its goroutine fails like any other: in a
// node, in a branch and in an item of a map.
func TestGoexitInALinkedBundleIsAnError(t *testing.T) {
	t.Parallel()
	exit := host.Func("quits.now", "Ends its goroutine.", func(context.Context, map[string]any) (any, error) { runtime.Goexit(); return nil, nil })
	h, err := host.New(host.Options{Bundles: []*tea.Bundle{{Name: "quits", Version: "1.0.0", Actions: []tea.Action{exit}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	wf, err := h.Parse("flow.yaml", []byte(`
nodes:
  - {name: node, uses: quits.now, on_error: continue}
  - {name: b1, uses: quits.now, on_error: continue}
  - {name: b2}
  - {name: join}
  - name: each
    type: dynamic_parallel
    items: "{{ [1, 2] }}"
    action: {uses: quits.now}
    fan_in: end
  - {name: end, run: "return {item = parallel_results[2].error_type}"}
edges:
  - {from: node, parallel: [b1, b2], fan_in: join}
  - {from: join, to: each}
`), host.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { wf.Close() })
	res, err := wf.Run(t.Context(), host.RunOptions{})
	if err != nil || res.Status != flow.Done {
		t.Fatal(err, res)
	}
	failed, _ := res.State["__errors__"].([]any)
	if len(failed) == 0 || res.State["item"] != "internal_error" || !strings.Contains(fmt.Sprint(failed[0]), "quits.now called runtime.Goexit") {
		t.Errorf("state = %v", res.State)
	}
}

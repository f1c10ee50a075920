package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

func TestFailures(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		input      map[string]any
		// want are parts of the error.
		want []string
	}{
		{"nothing matches", `
nodes: [{name: a, run: "return {n = 3}"}, {name: b}]
edges: [{from: a, to: b, when: "state.n > 5"}, {from: a, to: b, when: "{{ state.n == 4 }}"}]
`, nil, []string{"NoMatchingEdge", "state.n > 5 = false", "state.n == 4"}},
		{"condition fails", `
nodes: [{name: a}, {name: b}]
edges: [{from: a, to: b, when: "state.missing.deep > 1"}]
`, nil, []string{"ConditionEvaluation", "state.missing.deep > 1"}},
		{"unknown target of a switch", `
nodes: [{name: a}, {name: b}]
edges: [{from: a, condition: "return 'left'", targets: {right: b}}]
`, nil, []string{"NoMatchingEdge", "left", "right"}},
		{"goto without a match", `
nodes: [{name: a, goto: [{if: "false", to: a}]}]
`, nil, []string{"NoMatchingEdge"}},
		{"type of an update", `
state_schema: {n: int}
nodes: [{name: a, run: "return {n = 'x'}"}]
`, nil, []string{`node "a"`, `"n"`, "expected int", `got str ("x")`, "test.yaml:3"}},
		{"loop at its maximum", `
nodes: [{name: a, type: while_loop, condition: "true", max_iterations: 3, body: [{name: b}]}]
`, nil, []string{"max_iterations (3)"}},
		{"too many steps", `
nodes: [{name: a, goto: a}]
config: {max_steps: 10}
`, nil, []string{"max_steps (10)"}},
		{"node time-out", `
nodes: [{name: a, uses: time.sleep, with: {seconds: 3600}, timeout_seconds: 0.01}]
`, nil, []string{"timeout", "timeout_seconds"}},
		{"run time-out", `
nodes: [{name: a, uses: time.sleep, with: {seconds: 3600}}]
config: {timeout_seconds: 0.01}
`, nil, []string{"timeout", "config.timeout_seconds"}},
		{"Lua error with its line in the file", `
nodes:
  - name: a
    run: |
      local x = 1
      error("broken on purpose")
`, nil, []string{"test.yaml:6", "broken on purpose"}},
		{"a map over something else", `
nodes: [{name: a, type: dynamic_parallel, items: "{{ state.n }}", action: {uses: time.sleep, with: {seconds: 0}}}]
`, map[string]any{"n": int64(3)}, []string{"items must be a list", "integer"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			res := run(t, test.text, host.RunOptions{Input: test.input})
			if res.Status != flow.Failed {
				t.Fatalf("status = %s, state = %v", res.Status, res.State)
			}
			for _, part := range test.want {
				if !strings.Contains(res.Err.Error(), part) {
					t.Errorf("%q is not in %q", part, res.Err)
				}
			}
		})
	}
}

func TestBudgets(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"steps":   "nodes: [{name: a, goto: a}]\nbudget: {steps: 5}",
		"seconds": "nodes: [{name: a, uses: time.sleep, with: {seconds: 3600}}]\nbudget: {seconds: 0.01}",
		"tokens":  "nodes: [{name: a, run: 'return {usage = {total_tokens = 10}}', goto: a}]\nbudget: {tokens: 25}",
		"usd":     "nodes: [{name: a, run: 'return {cost_usd = 0.5}', goto: a}]\nbudget: {usd: 1.2}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := run(t, text, host.RunOptions{})
			var budget *flow.BudgetError
			if res.Status != flow.Stopped || !errors.As(res.Err, &budget) || budget.Limit != name {
				t.Fatalf("status = %s, err = %v", res.Status, res.Err)
			}
		})
	}
}

func TestInputThatDoesNotFit(t *testing.T) {
	t.Parallel()
	h, err := host.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	wf, err := h.Parse("test.yaml", []byte("state_schema: {n: {type: int, required: true}, s: str}\nnodes: [{name: a}]"), host.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer wf.Close()
	_, err = wf.Run(t.Context(), host.RunOptions{Input: map[string]any{"s": 1}})
	for _, part := range []string{`"n" is required`, `"s": expected str, got int (1)`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
}

// Templates and conditions around a node's body obey its time-out, too.
func TestTimeoutHoldsForConditions(t *testing.T) {
	t.Parallel()
	const slow = "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}x"
	for name, node := range map[string]string{
		"if":             `if: "SLOW"`,
		"goto":           `goto: [{if: "SLOW", to: b}, {to: END}]`,
		"parameters":     `uses: json.stringify, with: {data: "SLOW"}`,
		"output":         `uses: json.stringify, with: {data: 1}, output: {x: "SLOW"}`,
		"items":          `type: dynamic_parallel, items: "SLOW", steps: [{run: "return {}"}]`,
		"loop":           `type: while_loop, condition: "SLOW", max_iterations: 2, body: [{name: x}]`,
		"loop's output":  `type: while_loop, condition: "false", max_iterations: 2, body: [{name: x}], output: {x: "SLOW"}`,
		"step's if":      `steps: [{run: "return {}", if: "SLOW"}]`,
		"Lua condition":  `if: "(function() while true do end end)()"`,
		"map's template": `type: dynamic_parallel, items: [1], action: {uses: json.stringify, with: {data: "SLOW"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := run(t, "nodes: [{name: a, timeout_seconds: 0.02, "+strings.ReplaceAll(node, "SLOW", slow)+"}, {name: b}]", host.RunOptions{})
			if res.Status != flow.Failed || tea.AsError(res.Err).Type != tea.Timeout {
				t.Errorf("status = %s, err = %v", res.Status, res.Err)
			}
		})
	}
	t.Run("when", func(t *testing.T) {
		t.Parallel()
		res := run(t, "nodes: [{name: a, timeout_seconds: 0.02}, {name: b}]\nedges: [{from: a, to: b, when: \""+slow+"\"}]", host.RunOptions{})
		if res.Status != flow.Failed || tea.AsError(res.Err).Type != tea.Timeout {
			t.Errorf("status = %s, err = %v", res.Status, res.Err)
		}
	})
}

// code is a bundle of an action that runs code in another language.
func code() *tea.Bundle {
	type params struct {
		Code string `json:"code"`
	}
	run := tea.NewAction("code2.run", "Fails at the second line.", func(_ context.Context, _ *tea.Request, p params) (any, error) {
		if p.Code == "update" {
			return map[string]any{"success": false, "n": 1}, nil
		}
		return nil, tea.Errorf(tea.ValidationError, "broken").At("code", 2)
	})
	run.Result = &schema.Schema{Extra: map[string]any{tea.Update: true}}
	return &tea.Bundle{Name: "code2", Version: "1.0.0", Actions: []tea.Action{run}}
}

func TestErrorsInCodeHaveThePositionInTheFile(t *testing.T) {
	t.Parallel()
	h, err := host.New(host.Options{Bundles: []*tea.Bundle{code()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	run := func(text string) *flow.Result {
		t.Helper()
		wf, err := h.Parse("code.yaml", []byte(text), host.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { wf.Close() })
		res, err := wf.Run(t.Context(), host.RunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	for text, want := range map[string]string{
		"nodes:\n  - name: a\n    uses: code2.run\n    with:\n      code: |\n        one\n        two\n": "code.yaml:7:9: broken",
		"nodes: [{name: a, uses: code2.run, with: {code: \"{{ state.x | default('y') }}\\ntwo\"}}]\n":    "broken",
	} {
		if e := tea.AsError(run(text).Err); e == nil || e.Message != want {
			t.Errorf("got %v, want %q", e, want)
		}
	}
	if diff := cmp.Diff(map[string]any{"success": false, "n": int64(1)}, run("nodes: [{name: a, uses: code2.run, with: {code: update}}]\n").State); diff != "" {
		t.Errorf("an update of the state: %s", diff)
	}
}

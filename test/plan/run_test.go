//go:build linux

package plan

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tea runs tea in a directory and returns its output.
func tea(t *testing.T, dir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, "tea"), append(args, "--plugins", bin, "-c", "runs")...)
	cmd.Dir = dir
	var out, log strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), log.String(), cmd.ProcessState.ExitCode()
}

func write(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "flow.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The journal of 100 subtasks, with results of a sentence, stays far below
// 100 KB, although the state has the plan and the results too.
func TestCheckpointSize(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var list strings.Builder
	for i := range 100 {
		fmt.Fprintf(&list, "          - {id: step-%d, description: 'Find out how part %d works', dependencies: [%s]}\n",
			i, i, strings.Join([]string{fmt.Sprint("step-", i-1)}[:min(i, 1)], ""))
	}
	write(t, dir, `
nodes:
  - name: go
    uses: plan.execute
    output: done
    with:
      subtask_executor:
        action: json.stringify
        with: {data: "{{ subtask.id }} sees {{ results | length }} results and says so in a sentence"}
        output: "{{ result.text }}"
      plan:
        goal: A large plan
        subtasks:
`+list.String())
	if _, stderr, code := tea(t, dir, "run", "flow.yaml", "-q", "-o", "state.json"); code != 0 {
		t.Fatal(stderr)
	}
	files, err := filepath.Glob(filepath.Join(dir, "runs", "*.tea"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", len(data))
	if len(data) >= 70_000 {
		t.Errorf("the checkpoint has %d bytes", len(data))
	}
	// In the record of its call, in the plan and in subtask_results.
	if n := strings.Count(string(data), "step-50 sees"); n != 3 {
		t.Errorf("the checkpoint has a result %d times", n)
	}
}

// Questions of several subtasks wait together; the rest of the plan continues.
func TestQuestionsInsideAPlan(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, `
nodes:
  - name: go
    uses: plan.execute
    output: done
    with:
      subtask_executor:
        action: human.ask
        with: {question: "{{ subtask.description }} (after {{ results.keys() | sort | join(', ') }})"}
        output: "{{ result.answer }}"
      plan:
        subtasks:
          - {id: color, description: "Which color?"}
          - {id: size, description: "Which size?"}
          - {id: ok, description: "Order it?", dependencies: [color, size]}
`)
	_, stderr, code := tea(t, dir, "run", "flow.yaml")
	for _, want := range []string{"waiting · 2 interrupts", "go!color:ask: Which color?", "go!size:ask: Which size?"} {
		if code != 130 || !strings.Contains(stderr, want) {
			t.Fatalf("code %d, no %q in:\n%s", code, want, stderr)
		}
	}
	_, stderr, code = tea(t, dir, "resume", "flow.yaml", "--answer", `go!size:ask="XL"`)
	if code != 130 || !strings.Contains(stderr, "go!color:ask: Which color?") || strings.Contains(stderr, "go!size:ask:") {
		t.Fatalf("code %d:\n%s", code, stderr)
	}
	_, stderr, code = tea(t, dir, "resume", "flow.yaml", "--answer", `go!color:ask="blue"`)
	if code != 130 || !strings.Contains(stderr, "go!ok:ask: Order it? (after color, size)") {
		t.Fatalf("code %d:\n%s", code, stderr)
	}
	stdout, stderr, code := tea(t, dir, "resume", "flow.yaml", "--answer", `go!ok:ask="yes"`)
	var state struct {
		Done struct {
			Results map[string]string `json:"subtask_results"`
		} `json:"done"`
	}
	if err := json.Unmarshal([]byte(stdout), &state); code != 0 || err != nil || len(state.Done.Results) != 3 || state.Done.Results["size"] != "XL" {
		t.Fatalf("code %d, %v\n%s%s", code, err, stdout, stderr)
	}
}

// A plan changes after a failure when its questions are answered: an answer is
// not lost.
func TestQuestionBeforeAnotherPlan(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const module = `
local M = {}
function M.register_actions(registry)
  registry.plan = function()
    return {content = '{"subtasks": [{"id": "new", "description": "new", "dependencies": ["ask"]}]}'}
  end
  registry.work = function(_, params)
    if params.id == "bad" then error("broken") end
    if params.id == "ask" then return {text = tea.action("human.ask", {question = "Why?"}).answer} end
    return {text = "did " .. params.id}
  end
end
return M
`
	if err := os.WriteFile(filepath.Join(dir, "m.lua"), []byte(module), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, dir, `
imports: [{path: m.lua, namespace: m}]
nodes:
  - name: go
    uses: plan.execute
    with:
      plan:
        subtasks:
          - {id: ask, description: ask}
          - {id: bad, description: bad}
      on_subtask_failure: replan
      planner: {action: m.plan}
      subtask_executor: {action: m.work, with: {id: "{{ subtask.id }}"}, output: "{{ result.text }}"}
    output: {results: "{{ result.subtask_results }}"}
`)
	_, stderr, code := tea(t, dir, "run", "flow.yaml")
	found := regexp.MustCompile(`go!ask!human\.ask:[0-9a-f]+:ask`).FindString(stderr)
	if code != 130 || found == "" || strings.Contains(stderr, "go!new") {
		t.Fatalf("code %d:\n%s", code, stderr)
	}
	if _, stderr, code = tea(t, dir, "resume", "flow.yaml", "--pass", "none"); code != 130 || strings.Contains(stderr, "go!new") {
		t.Fatalf("code %d:\n%s", code, stderr)
	}
	stdout, stderr, code := tea(t, dir, "resume", "flow.yaml", "--answer", found+`="because"`)
	var state struct{ Results map[string]string }
	if err := json.Unmarshal([]byte(stdout), &state); code != 0 || err != nil {
		t.Fatalf("code %d, %v:\n%s%s", code, err, stdout, stderr)
	}
	if diff := cmp.Diff(map[string]string{"ask": "because", "new": "did new"}, state.Results); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

// A plan that was aborted fails the run; the resumed run executes only what is
// not completed, with a plan that may have changed, and may be aborted again.
func TestAbortedPlanIsResumed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const flow = `
initial_state:
  plan:
    subtasks:
      - {id: a, description: a}
      - {id: b, description: "not json", dependencies: [a]}
      - {id: c, description: c, dependencies: [b]}
nodes:
  - name: go
    uses: plan.execute
    output: done
    with:
      plan: "{{ state.plan }}"
      subtask_executor: {action: json.parse, with: {text: "{{ 'x' if subtask.description == 'not json' else '1' }}"}}
`
	write(t, dir, flow)
	_, stderr, code := tea(t, dir, "run", "flow.yaml")
	if code != 1 || !strings.Contains(stderr, `plan_aborted: subtask "b" failed`) {
		t.Fatalf("code %d:\n%s", code, stderr)
	}
	_, stderr, code = tea(t, dir, "resume", "flow.yaml")
	if code != 1 || !strings.Contains(stderr, `plan_aborted: subtask "b" failed`) || strings.Contains(stderr, "go!a") {
		t.Fatalf("code %d:\n%s", code, stderr)
	}
	changed := `{"plan": {"subtasks": [{"id": "a", "description": "a"}, {"id": "b", "description": "better", "dependencies": ["a"]}, {"id": "d", "description": "d"}]}}`
	stdout, stderr, code := tea(t, dir, "resume", "flow.yaml", "-i", changed)
	if code != 0 || strings.Contains(stderr, "go!a") || !strings.Contains(stderr, "go!b~3: done") || !strings.Contains(stderr, "go!d: done") {
		t.Fatalf("code %d:\n%s%s", code, stdout, stderr)
	}
}

// An executor without what its action needs failed after the model was paid for the
// plan. The model here answers with a list, as the prompt of an author may ask.
func TestExecutorThatCannotWorkIsFoundBeforeThePlanIsPaidFor(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"choices": [{"message": {"content": "[{\"id\": \"a\", \"description\": \"x\", \"dependencies\": []}]"}, "finish_reason": "stop"}]}`)
	}))
	t.Cleanup(model.Close)
	dir := t.TempDir()
	flow := func(executor string) {
		write(t, dir, `
settings: {llm: {model: m, api_base: "`+model.URL+`"}}
nodes:
  - {name: plan, uses: plan.decompose, with: {goal: g}, output: {plan: "{{ result.plan }}"}}
  - name: go
    uses: plan.execute
    with: {plan: "{{ state.plan }}", subtask_executor: `+executor+`}
    output: {results: "{{ result.subtask_results }}"}
`)
	}
	for executor, parts := range map[string][]string{
		`{action: llm.call}`:                                         {"needs prompt or messages", "subtask_executor.with", "{{ subtask.description }}"},
		`{action: llm.call, with: {promt: a}}`:                       {`has no parameter "promt"`},
		`{action: llm.cal, with: {prompt: a}}`:                       {`unknown action "llm.cal"`, `did you mean "llm.call"`},
		`{action: workflow.run}`:                                     {"workflow.run needs the parameter"},
		`{action: plan.status}`:                                      {`write plan: "{{ state.plan }}"`, `needs the parameter "plan"`},
		`{action: llm.tools, with: {tools: [a.b]}}`:                  {"needs prompt or messages"},
		`{action: json.stringify, with: {date: "{{ subtask.id }}"}}`: {`did you mean "data"`},
	} {
		flow(executor)
		_, stderr, code := tea(t, dir, "run", "flow.yaml")
		for _, part := range parts {
			if code == 0 || !strings.Contains(stderr, part) {
				t.Errorf("%s: code %d, %q is missing in:\n%s", executor, code, part, stderr)
			}
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
	flow(`{action: llm.call, with: {prompt: "{{ subtask.description }}"}, output: "{{ subtask.id }}"}`)
	stdout, stderr, code := tea(t, dir, "run", "flow.yaml")
	if code != 0 || asked.Load() != 2 || strings.Contains(stderr, "failed") || !strings.Contains(stdout, `"a": "a"`) {
		t.Errorf("code %d, asked %d times:\n%s\n%s", code, asked.Load(), stdout, stderr)
	}
}

package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const greet = `
description: Greets somebody.
state_schema: {name: {type: str, required: true}, greeting: str}
nodes:
  - {name: hello, run: 'return {greeting = "Hello " .. state.name}'}
`

const ask = `
nodes:
  - {name: first, run: 'return {n = 1}'}
  - {name: q, uses: human.ask, with: {question: "Go on?", choices: ["yes", "no"]}, output: {answer: "{{ result.answer }}"}}
  - {name: last, run: 'return {m = state.n + 1}'}
`

func TestRunThroughTheAPI(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"greet.yaml": greet}).serve()
	run := s.run("greet", `{"name": "Ada"}`)
	if diff := cmp.Diff(map[string]any{"name": "Ada", "greeting": "Hello Ada"}, run["state"]); diff != "" || run["status"] != "done" {
		t.Errorf("run %v, state (-want +got):\n%s", run, diff)
	}
	id := run["id"].(string)
	if r := s.request("GET", "/v1/runs/"+id+"?state=true", ""); r.body["status"] != "done" || r.body["state"].(map[string]any)["greeting"] != "Hello Ada" {
		t.Errorf("run: %s", r)
	}
	if r := s.request("GET", "/v1/runs/"+id+"/state", ""); r.body["greeting"] != "Hello Ada" {
		t.Errorf("state: %s", r)
	}
	if r := s.request("GET", "/v1/runs/"+id+"/graph.svg", ""); !strings.Contains(r.text, "<svg") {
		t.Errorf("graph: %s", r)
	}
	r := s.request("POST", "/v1/workflows/greet/runs", `{"input": {"name": "Bob"}}`)
	if r.status != http.StatusAccepted || r.header.Get("Location") != "/v1/runs/"+r.body["id"].(string) {
		t.Errorf("without wait: %s, %v", r, r.header)
	}
	var events []string
	s.events(r.body["id"].(string), "", func(e event) bool {
		events = append(events, e.data["event"].(string))
		return true
	})
	if diff := cmp.Diff([]string{"run_start", "node_start", "node_end", "run_end"}, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	s.interrupt()
}

func TestRequestsThatAreNotValid(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"greet.yaml": greet}).serve()
	for _, c := range []struct {
		method, path, body string
		status             int
		detail             string
	}{
		{"POST", "/v1/workflows/gone/runs", `{}`, 404, "no such workflow"},
		{"POST", "/v1/workflows/greet/runs", `{"input": {"name": 1}}`, 422, "expected str"},
		{"POST", "/v1/workflows/greet/runs", ``, 422, "required"},
		{"POST", "/v1/workflows/greet/runs", `{"inptu": {}}`, 400, `unknown member "inptu"`},
		{"POST", "/v1/workflows/greet/runs", `{"input": []}`, 400, "expected an object"},
		{"POST", "/v1/workflows/greet/runs", `{"input"`, 400, "body"},
		{"POST", "/v1/workflows/greet/runs?wait=x", `{}`, 400, "wait"},
		{"GET", "/v1/runs/nosuchrun", ``, 404, "no such run"},
		{"GET", "/v1/runs/..%2f..%2fetc", ``, 404, "no such run"},
		{"POST", "/v1/runs/nosuchrun/cancel", ``, 404, "no such run"},
		{"GET", "/v1/runs?limit=0", ``, 400, "limit"},
		{"GET", "/nothing", ``, 404, "there is nothing"},
		{"POST", "/v1/workflows/greet/runs", `{"a":"` + strings.Repeat("x", 4<<20) + `"}`, 413, "bytes"},
	} {
		r := s.request(c.method, c.path, c.body)
		detail, _ := r.body["detail"].(string)
		if r.status != c.status || !strings.Contains(detail, c.detail) || r.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s %.100s: %.300s", c.method, c.path, c.body, r)
		}
	}
	if r := s.request("POST", "/v1/workflows/greet/runs", "x", "Content-Type", "text/plain"); r.status != http.StatusUnsupportedMediaType {
		t.Errorf("text: %s", r)
	}
	if list := s.request("GET", "/v1/runs", "").body["runs"].([]any); len(list) != 0 {
		t.Errorf("runs began: %v", list)
	}
}

func TestIdempotencyKeyStartsOneRun(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": greet})
	s := p.serve()
	start := func(key, name string) response {
		return s.request("POST", "/v1/workflows/greet/runs?wait=600", `{"input": {"name": "`+name+`"}}`, "Idempotency-Key", key)
	}
	first, again, other := start("k", "Ada"), start("k", "Ada"), start("l", "Ada")
	if first.body["id"] != again.body["id"] || again.header.Get("Idempotent-Replayed") != "true" || again.body["status"] != "done" {
		t.Errorf("first %s, again %s", first, again)
	}
	if other.body["id"] == first.body["id"] {
		t.Errorf("other key: %s", other)
	}
	if r := start("k", "Bob"); r.status != http.StatusUnprocessableEntity {
		t.Errorf("other input: %s", r)
	}
	s.kill()
	s = p.serve()
	if r := start("k", "Ada"); r.body["id"] != first.body["id"] {
		t.Errorf("after a kill: %s, first %s", r, first)
	}
}

func TestListOfRunsHasPagesAndFilters(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"greet.yaml": greet, "fail.yaml": "nodes: [{name: n, run: 'error(\"no\")'}]"}).serve()
	want := map[string]bool{}
	for i := range 5 {
		want[s.run("greet", fmt.Sprintf(`{"name": "%d"}`, i))["id"].(string)] = true
	}
	failed := s.run("fail", "{}")
	if failed["status"] != "failed" || !strings.Contains(failed["error"].(string), "no") {
		t.Errorf("failed run: %v", failed)
	}
	got := map[string]bool{}
	path := "/v1/runs?workflow=greet&limit=2"
	for pages := 0; ; pages++ {
		r := s.request("GET", path, "")
		for _, run := range r.body["runs"].([]any) {
			got[run.(map[string]any)["id"].(string)] = true
		}
		next, ok := r.body["next"].(string)
		if !ok {
			if pages != 2 {
				t.Errorf("%d pages", pages)
			}
			break
		}
		path = "/v1/runs?workflow=greet&limit=2&after=" + next
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if list := s.request("GET", "/v1/runs?status=failed", "").body["runs"].([]any); len(list) != 1 || list[0].(map[string]any)["id"] != failed["id"] {
		t.Errorf("failed runs: %v", list)
	}
}

func TestQuestionIsAnswered(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"ask.yaml": ask})
	s := p.serve()
	run := s.run("ask", "{}")
	id := run["id"].(string)
	if run["status"] != "waiting" || run["pending"].([]any)[0].(map[string]any)["question"] != "Go on?" {
		t.Fatalf("run: %v", run)
	}
	s.kill()
	s = p.serve()
	if r := s.request("POST", "/v1/runs/"+id+"/resume?wait=600", `{"answers": {"q": "perhaps"}}`); r.status != http.StatusUnprocessableEntity {
		t.Errorf("wrong answer: %s", r)
	}
	r := s.request("POST", "/v1/runs/"+id+"/resume?wait=600", `{"answers": {"q": "yes"}}`)
	if state, _ := r.body["state"].(map[string]any); r.status != 200 || state["answer"] != "yes" || state["m"] != 2.0 {
		t.Errorf("answered: %s", r)
	}
	if r := s.request("POST", "/v1/runs/"+id+"/resume", `{}`); r.status != http.StatusConflict {
		t.Errorf("a run that is done: %s", r)
	}
	fork := s.request("POST", "/v1/runs/"+id+"/fork?wait=600", `{"at": "first", "input": {"n": 10}}`)
	if fork.body["status"] != "waiting" || fork.body["state"].(map[string]any)["n"] != 10.0 || fork.body["id"] == id {
		t.Errorf("fork: %s", fork)
	}
}

// block returns a workflow that waits until a file exists.
func block(file string) string {
	return `
state_schema: {n: int}
settings: {file: {root: "` + filepath.Dir(file) + `"}}
nodes:
  - {name: begun, run: 'tea.log("info", "begun"); return {}'}
  - name: wait
    type: while_loop
    condition: "{{ not state.open }}"
    max_iterations: 1000
    body:
      - {name: look, uses: file.exists, with: {path: "` + filepath.Base(file) + `"}, output: {open: "{{ result.exists }}"}}
      - {name: pause, if: "{{ not state.open }}", uses: time.sleep, with: {seconds: 0.1}, output: pause}
`
}

func TestCanceledRunStops(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	gate := filepath.Join(p.home, "gate")
	p.write("block.yaml", block(gate)+"serve: {max_running: 1}\n")
	s := p.serve()
	first := s.request("POST", "/v1/workflows/block/runs", "").body["id"].(string)
	s.events(first, "", func(e event) bool { return e.data["message"] != "begun" })
	second := s.request("POST", "/v1/workflows/block/runs", "")
	if second.body["status"] != "queued" {
		t.Errorf("second: %s", second)
	}
	for _, id := range []string{second.body["id"].(string), first} {
		if r := s.request("POST", "/v1/runs/"+id+"/cancel", ""); r.body["status"] != "stopped" {
			t.Errorf("cancel: %s", r)
		}
	}
	if r := s.request("POST", "/v1/runs/"+first+"/cancel", ""); r.status != http.StatusConflict {
		t.Errorf("cancel again: %s", r)
	}
	if r := s.request("GET", "/v1/runs/"+first, ""); r.body["status"] != "stopped" || !strings.Contains(r.body["error"].(string), "stopped by a request") {
		t.Errorf("run: %s", r)
	}
}

func TestEventsContinueAfterLastEventID(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"ask.yaml": ask}).serve()
	run := s.run("ask", "{}")
	id := run["id"].(string)
	var all []string
	s.events(id, "", func(e event) bool { all = append(all, e.id); return true })
	var rest []string
	s.events(id, all[2], func(e event) bool { rest = append(rest, e.id); return true })
	if diff := cmp.Diff(all[3:], rest); diff != "" || len(all) < 5 {
		t.Errorf("events after %s of %v (-want +got):\n%s", all[2], all, diff)
	}
	s.request("POST", "/v1/runs/"+id+"/resume?wait=600", `{"answers": {"q": "yes"}}`)
	s.events(id, all[len(all)-1], func(e event) bool { all = append(all, e.id); return true })
	if status := s.events(id, all[len(all)-1], func(e event) bool { t.Errorf("event %v", e); return true }); status != http.StatusNoContent {
		t.Errorf("after the last event: status %d", status)
	}
}

func TestRunOfAnEarlierServerIsDescribedAsBefore(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"fail.yaml": "nodes: [{name: n, uses: file.read, with: {path: none}}]\n", "budget.yaml": "budget: {steps: 1}\nnodes: [{name: a, run: 'return {a = 1}'}, {name: b, run: 'return {b = 1}'}]\n"})
	s := p.serve()
	runs := map[string]any{}
	for _, workflow := range []string{"fail", "budget"} {
		run := s.run(workflow, "{}")
		if runs[run["id"].(string)] = run["error_type"]; run["error_type"] == nil {
			t.Errorf("run: %v", run)
		}
	}
	s.interrupt()
	s = p.serve()
	for id, want := range runs {
		if r := s.request("GET", "/v1/runs/"+id, ""); r.body["error_type"] != want {
			t.Errorf("expected %v: %s", want, r)
		}
	}
	for path, want := range map[string]string{"/v1/runs/none": `\"none\"`, "/v1/workflows/gone": `\"gone\"`} {
		if r := s.request("GET", path, ""); r.status != http.StatusNotFound || !strings.Contains(r.text, want) {
			t.Errorf("%s: %s", path, r)
		}
	}
}

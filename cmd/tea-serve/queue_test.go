package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// open ends the runs of [block].
func open(t *testing.T, gate string) {
	t.Helper()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// started starts a run of the workflow block and waits until it runs.
func (s *service) started() string {
	s.t.Helper()
	r := s.request("POST", "/v1/workflows/block/runs", "")
	id, _ := r.body["id"].(string)
	if id == "" {
		s.t.Fatalf("start: %s", r)
	}
	s.events(id, "", func(e event) bool { return e.data["message"] != "begun" })
	return id
}

// status waits for the end of a run and returns its status.
func (s *service) status(id string) string {
	s.t.Helper()
	s.events(id, "", func(event) bool { return true })
	status, _ := s.request("GET", "/v1/runs/"+id, "").body["status"].(string)
	return status
}

// asking is a workflow that waits for an answer.
const asking = `nodes: [{name: q, uses: human.ask, with: {question: "Go?"}, output: {answer: "{{ result.answer }}"}}]
serve: `

func TestOpenQuestionsAreBounded(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"ask.yaml": asking + "{max_running: 1, overlap: skip, triggers: [{every: 0.05}, {at_start: true, name: start}]}\n"})
	s := p.serve()
	ask := func() string {
		t.Helper()
		s.awaitStatuses("ask", map[string]int{"waiting": 1})
		for range 3 {
			s.log.await(t, "starts no run: a run is running or waits for an answer, and overlap is skip")
		}
		runs := s.request("GET", "/v1/runs?status=waiting", "").body["runs"].([]any)
		if len(runs) != 1 {
			t.Fatalf("%d runs wait for an answer\n%s", len(runs), s.log)
		}
		return runs[0].(map[string]any)["id"].(string)
	}
	first := ask()
	s.kill()
	s = p.serve()
	if second := ask(); second != first {
		t.Errorf("run %s waits after a restart, not %s", second, first)
	}
	if r := s.request("POST", "/v1/runs/"+first+"/resume?wait=60", `{"answers": {"q": "yes"}}`); r.body["status"] != "done" {
		t.Fatal(r)
	}
	s.awaitStatuses("ask", map[string]int{"waiting": 1, "done": 1})
}

func TestWaitingRunsKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{
		"ask.yaml":  asking + "{max_running: 1}\n",
		"free.yaml": asking + "{max_running: 1, count_waiting: false}\n",
		"new.yaml":  asking + "{max_running: 1, overlap: cancel_running}\n",
	})
	s := p.serve()
	waiting := func(workflow string) (ids []string) {
		t.Helper()
		for range 2 {
			r := s.request("POST", "/v1/workflows/"+workflow+"/runs", "")
			ids = append(ids, r.body["id"].(string))
			if len(ids) == 1 {
				s.awaitStatuses(workflow, map[string]int{"waiting": 1})
			}
		}
		return ids
	}
	ids := waiting("ask")
	if r := s.request("GET", "/v1/runs/"+ids[1], ""); r.body["status"] != "queued" || !strings.Contains(r.text, "those that wait for an answer included") {
		t.Errorf("the second run: %s", r)
	}
	if r := s.request("POST", "/v1/runs/"+ids[0]+"/resume?wait=60", `{"answers": {"q": "yes"}}`); r.body["status"] != "done" {
		t.Errorf("the answered run: %s", r)
	}
	s.awaitStatuses("ask", map[string]int{"done": 1, "waiting": 1})
	third := s.request("POST", "/v1/workflows/ask/runs", "").body["id"].(string)
	s.request("POST", "/v1/runs/"+ids[1]+"/cancel", "")
	s.awaitStatuses("ask", map[string]int{"done": 1, "stopped": 1, "waiting": 1})
	if r := s.request("GET", "/v1/runs/"+third, ""); r.body["status"] != "waiting" {
		t.Errorf("the third run: %s", r)
	}
	waiting("free")
	s.awaitStatuses("free", map[string]int{"waiting": 2})
	ids = waiting("new")
	s.awaitStatuses("new", map[string]int{"waiting": 1, "stopped": 1})
	if r := s.request("GET", "/v1/runs/"+ids[0], ""); r.body["error"] != "stopped by a newer run (overlap: cancel_running)" {
		t.Errorf("the replaced run: %s", r)
	}
}

func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	gate := filepath.Join(p.home, "gate")
	p.write("block.yaml", block(gate)+"serve: {max_running: 1, max_queue: 1}\n")
	s := p.serve()
	first := s.started()
	second := s.request("POST", "/v1/workflows/block/runs", "")
	if second.body["status"] != "queued" {
		t.Errorf("second: %s", second)
	}
	if r := s.request("POST", "/v1/workflows/block/runs", ""); r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") == "" {
		t.Errorf("third: %s", r)
	}
	open(t, gate)
	for _, id := range []string{first, second.body["id"].(string)} {
		if status := s.status(id); status != "done" {
			t.Errorf("run %s: %s", id, status)
		}
	}
}

func TestOverlap(t *testing.T) {
	t.Parallel()
	for overlap, want := range map[string]string{"skip": "409", "cancel_running": "stopped"} {
		t.Run(overlap, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, nil)
			gate := filepath.Join(p.home, "gate")
			p.write("block.yaml", block(gate)+"serve: {max_running: 1, overlap: "+overlap+"}\n")
			s := p.serve()
			first := s.started()
			second := s.request("POST", "/v1/workflows/block/runs", "")
			if overlap == "skip" {
				if second.status != http.StatusConflict {
					t.Errorf("second: %s", second)
				}
				return
			}
			if status := s.status(first); status != want {
				t.Errorf("first: %s", status)
			}
			if r := s.request("GET", "/v1/runs/"+first, ""); r.body["error"] != "stopped by a newer run (overlap: cancel_running)" {
				t.Errorf("first: %s", r)
			}
			open(t, gate)
			if status := s.status(second.body["id"].(string)); status != "done" {
				t.Errorf("second: %s", status)
			}
		})
	}
}

func TestNewestRunIsNext(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	gate := filepath.Join(p.home, "gate")
	p.write("block.yaml", block(gate)+`  - {name: note, uses: file.append, with: {path: notes, content: "\n{{ state.n }}"}}
serve: {max_running: 1, order: lifo}
`)
	s := p.serve()
	first := s.started()
	for _, n := range []string{"1", "2", "3"} {
		s.request("POST", "/v1/workflows/block/runs", `{"input": {"n": `+n+`}}`)
	}
	open(t, gate)
	s.status(first)
	for range 4 {
		s.log.await(t, "of block: done")
	}
	if diff := cmp.Diff([]string{"3", "2", "1"}, p.notes()); diff != "" && !strings.HasSuffix(strings.Join(p.notes(), " "), "3 2 1") {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func TestFailedRunIsRetriedFromTheNodeThatFailed(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	p.write("flaky.yaml", note(p, "once", `
  - {name: look, uses: file.exists, with: {path: gate}, output: {open: "{{ result.exists }}"}}
  - {name: gate, uses: file.append, with: {path: gate, content: x}}
  - {name: fail, run: 'if not state.open then error("closed") end return {}'}
serve: {retry: {max_retries: 5, backoff_base_ms: 10}}
`))
	s := p.serve()
	run := s.run("flaky", "{}")
	if run["status"] != "parked" || !strings.Contains(run["parked"].(string), "3 times in a row") {
		t.Errorf("run: %v", run)
	}
	if diff := cmp.Diff([]string{"once"}, p.notes()); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	id := run["id"].(string)
	if list := s.request("GET", "/v1/runs?status=parked", "").body["runs"].([]any); len(list) != 1 {
		t.Errorf("parked: %v", list)
	}
	s.kill()
	s = p.serve()
	if r := s.request("POST", "/v1/runs/"+id+"/resume?wait=600", `{"input": {"open": true}}`); r.body["status"] != "done" {
		t.Errorf("resumed: %s\n%s", r, s.log)
	}
}

func TestDeduplicationKeyOfTheWorkflow(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"order.yaml": "nodes: [{name: n}]\nserve: {key: \"{{ event.body.order }}\"}\n"})
	s := p.serve()
	first, second, other := s.run("order", `{"order": 7}`), s.run("order", `{"order": 7, "x": 1}`), s.run("order", `{"order": 8}`)
	if first["id"] != second["id"] || other["id"] == first["id"] {
		t.Errorf("runs: %v, %v, %v", first["id"], second["id"], other["id"])
	}
}

func TestRunThatWasCancelledInTheQueueIsStopped(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	p.write("block.yaml", block(filepath.Join(p.home, "gate"))+"serve: {max_running: 1}\n")
	s := p.serve()
	s.started()
	start := func(query string) response {
		return s.request("POST", "/v1/workflows/block/runs"+query, "", "Idempotency-Key", "k")
	}
	id, _ := start("").body["id"].(string)
	if r := s.request("POST", "/v1/runs/"+id+"/cancel", ""); r.body["status"] != "stopped" {
		t.Fatalf("cancel: %s", r)
	}
	check := func() {
		t.Helper()
		for _, query := range []string{"", "?wait=600"} {
			if r := start(query); r.body["id"] != id || r.body["status"] != "stopped" {
				t.Errorf("key again%s: %s", query, r)
			}
		}
		if r := s.request("GET", "/v1/runs/"+id, ""); r.status != http.StatusOK || r.body["status"] != "stopped" || r.body["workflow"] != "block" || r.body["accepted_at"] == nil {
			t.Errorf("run: %s", r)
		}
		if r := s.request("GET", "/v1/runs?status=stopped", ""); !strings.Contains(r.text, id) {
			t.Errorf("list: %s", r)
		}
		for _, action := range []string{"cancel", "retry"} {
			if r := s.request("POST", "/v1/runs/"+id+"/"+action, ""); r.status != http.StatusConflict {
				t.Errorf("%s: %s", action, r)
			}
		}
		if r := s.request("GET", "/v1/runs/"+id+"/events", ""); r.status != http.StatusNoContent {
			t.Errorf("events: %s", r)
		}
	}
	check()
	s.kill()
	s = p.serve()
	check()
}

func TestParkedRunStartsTheWorkflowForFailures(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{
		"fail.yaml": "nodes: [{name: n, run: 'error(\"no luck\")'}]\nserve: {retry: {max_retries: 5, backoff_base_ms: 10}}\n",
		"alarm.yaml": `nodes: [{name: n}]
serve:
  triggers:
    - {on_run: fail, status: [failed], input: {run: "{{ event.run_id }}", status: "{{ event.status }}", error: "{{ 'no luck' in event.error }}"}}
    - {on_run: fail, name: ended, status: [done, stopped, waiting]}
`,
	})
	s := p.serve()
	id := s.run("fail", "{}")["id"].(string)
	s.log.await(t, "of alarm: done")
	alarms := s.request("GET", "/v1/runs?workflow=alarm", "").body["runs"].([]any)
	if len(alarms) != 1 {
		t.Fatalf("alarms: %v\n%s", alarms, s.log)
	}
	alarm := s.request("GET", "/v1/runs/"+alarms[0].(map[string]any)["id"].(string)+"/state", "").body
	if diff := cmp.Diff(map[string]any{"run": id, "status": "failed", "error": true}, alarm); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
	if r := s.request("GET", "/v1/runs/"+id, ""); r.body["status"] != "parked" {
		t.Errorf("run: %s", r)
	}
}

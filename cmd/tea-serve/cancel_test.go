package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// onRunWorkflow is a workflow that starts at the ends of runs of another one.
func onRunWorkflow(of, statuses string) string {
	return "nodes: [{name: n}]\nserve: {triggers: [{on_run: " + of + ", status: [" + statuses + "], input: {of: \"{{ event.status }}\"}}]}\n"
}

func TestWaitingRunIsCancelled(t *testing.T) {
	t.Parallel()
	for name, question := range map[string]string{"for ever": "", "until a deadline": ", timeout_seconds: 100000, on_timeout: fail"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, map[string]string{
				"ask.yaml":   `nodes: [{name: q, uses: human.ask, with: {question: "Go?"` + question + `}}]`,
				"alarm.yaml": onRunWorkflow("ask", "stopped"),
			})
			s := p.serve()
			id := s.run("ask", "{}")["id"].(string)
			if r := s.request("POST", "/v1/runs/"+id+"/cancel", ""); r.body["status"] != "stopped" {
				t.Fatalf("cancel: %s", r)
			}
			s.log.await(t, "of alarm: done")
			check := func() {
				t.Helper()
				if r := s.request("GET", "/v1/runs/"+id, ""); r.body["status"] != "stopped" || r.body["error"] != "stopped by a request" {
					t.Errorf("run: %s", r)
				}
				if r := s.request("POST", "/v1/runs/"+id+"/cancel", ""); r.status != http.StatusConflict || !strings.Contains(r.text, "its status is stopped") {
					t.Errorf("cancel again: %s", r)
				}
			}
			check()
			s.kill()
			s = p.serve()
			check()
		})
	}
}

func TestRunThatWasCancelledInTheQueueStartsItsFollowers(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"alarm.yaml": onRunWorkflow("block", "stopped")})
	p.write("block.yaml", block(filepath.Join(p.home, "gate"))+"serve: {max_running: 1}\n")
	s := p.serve()
	s.started()
	id := s.request("POST", "/v1/workflows/block/runs", "").body["id"].(string)
	if r := s.request("POST", "/v1/runs/"+id+"/cancel", ""); r.body["status"] != "stopped" {
		t.Fatalf("cancel: %s", r)
	}
	s.log.await(t, "of alarm: done")
}

func TestRunThatRunsAgainStartsItsFollowersAgain(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"alarm.yaml": onRunWorkflow("gate", "failed, done")})
	p.write("gate.yaml", `
settings: {file: {root: "`+p.home+`"}}
nodes: [{name: n, uses: file.read, with: {path: open}}]
`)
	s := p.serve()
	id := s.run("gate", "{}")["id"].(string)
	s.log.await(t, "of alarm: done")
	if r := s.request("POST", "/v1/runs/"+id+"/retry?wait=600", ""); r.body["status"] != "failed" {
		t.Errorf("retry: %s", r)
	}
	s.log.await(t, "of alarm: done")
	open(t, filepath.Join(p.home, "open"))
	if r := s.request("POST", "/v1/runs/"+id+"/retry?wait=600", ""); r.body["status"] != "done" {
		t.Errorf("retry: %s", r)
	}
	s.log.await(t, "of alarm: done")
	if r := s.request("GET", "/v1/runs?workflow=alarm", ""); len(r.body["runs"].([]any)) != 3 {
		t.Errorf("alarms: %s", r)
	}
	for _, action := range []string{"retry", "resume"} {
		if r := s.request("POST", "/v1/runs/"+id+"/"+action, ""); r.status != http.StatusConflict || !strings.Contains(r.text, "the run is done") {
			t.Errorf("%s of a done run: %s", action, r)
		}
	}
}

func TestRetryOfAWaitingRunIsRefused(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"ask.yaml": ask}).serve()
	id := s.run("ask", "{}")["id"].(string)
	if r := s.request("POST", "/v1/runs/"+id+"/retry", ""); r.status != http.StatusConflict || !strings.Contains(r.text, "the run waits") {
		t.Errorf("retry: %s", r)
	}
	if r := s.request("POST", "/v1/runs/"+id+"/resume?wait=600", `{"answers": {"q": "yes"}}`); r.body["status"] != "done" {
		t.Errorf("answer: %s", r)
	}
}

func TestEventsContinueAfterAnAnswer(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"ask.yaml": ask}).serve()
	id := s.run("ask", "{}")["id"].(string)
	last := ""
	s.events(id, "", func(e event) bool { last = e.id; return true })
	ended := make(chan string, 1)
	go func() { // as a browser that connects again
		status := ""
		s.events(id, last, func(e event) bool {
			if e.data["event"] == "run_end" {
				status, _ = e.data["status"].(string)
			}
			last = e.id
			return true
		})
		ended <- status
	}()
	if r := s.request("POST", "/v1/runs/"+id+"/resume", `{"answers": {"q": "yes"}}`); r.status != http.StatusAccepted {
		t.Fatalf("answer: %s", r)
	}
	if status := <-ended; status != "done" {
		t.Errorf("the stream ended with the status %q", status)
	}
	if status := s.events(id, last, func(event) bool { return true }); status != http.StatusNoContent {
		t.Errorf("after the last event: %d", status)
	}
}

package main

import (
	"net/http"
	"strings"
	"testing"
)

const fails = "nodes: [{name: a, run: 'return {n = state.n}'}, {name: n, run: 'if state.n ~= 1 then error(\"the pump is broken\") end return {m = 2}'}]\n"

// bulk changes runs and returns the status or error of each.
func (s *service) bulk(action string, ids ...string) (list []string) {
	s.t.Helper()
	r := s.request("POST", "/v1/runs/"+action, `{"ids": ["`+strings.Join(ids, `", "`)+`"]}`)
	runs, _ := r.body["runs"].([]any)
	if r.status != http.StatusOK || len(runs) != len(ids) {
		s.t.Fatalf("%s: %s", action, r)
	}
	for i, one := range runs {
		one := one.(map[string]any)
		if one["id"] != ids[i] {
			s.t.Errorf("%s: %v is not %s", action, one, ids[i])
		}
		text, _ := one["status"].(string)
		if problem, ok := one["error"].(string); ok {
			text = "error: " + problem
		}
		list = append(list, text)
	}
	return list
}

func (s *service) bulkIs(action string, want []string, ids ...string) {
	s.t.Helper()
	for i, got := range s.bulk(action, ids...) {
		if !strings.Contains(got, want[i]) {
			s.t.Errorf("%s %s: %q, want %q", action, ids[i], got, want[i])
		}
	}
}

func TestSeveralRunsAreChangedAndFailuresReported(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": greet, "ask.yaml": ask, "fail.yaml": fails})
	s := p.serve()
	id := func(workflow, input string) string { return s.run(workflow, input)["id"].(string) }
	done, waits, failed := id("greet", `{"name": "Ada"}`), id("ask", "{}"), id("fail", `{"n": 2}`)
	s.bulkIs("delete", []string{"cancel it before", "no such run", "no such run"}, waits, "nosuch", "../x")
	s.bulkIs("cancel", []string{"error: the run cannot be stopped: its status is done", "stopped", "no such run"}, done, waits, "nosuch")
	s.bulkIs("retry", []string{"error: the run is done", ""}, done, failed)
	s.events(failed, "", func(event) bool { return true }) // until it has ended again
	s.bulkIs("delete", []string{"deleted", "deleted", "no such run"}, done, failed, done)
	if _, ids, _ := s.page(""); len(ids) != 1 || ids[0] != waits {
		t.Errorf("runs: %v", ids)
	}
	if r := s.request("GET", "/v1/runs/"+done, ""); r.status != http.StatusNotFound {
		t.Errorf("deleted run: %s", r)
	}
	for _, body := range []string{`{}`, `{"ids": []}`, `{"ids": [1]}`, `{"ids": "x"}`, `{"runs": ["x"]}`} {
		if r := s.request("POST", "/v1/runs/delete", body); r.status != http.StatusBadRequest {
			t.Errorf("%s: %s", body, r)
		}
	}
	s.interrupt()
	s = p.serve()
	if _, ids, _ := s.page(""); len(ids) != 1 || ids[0] != waits {
		t.Errorf("runs after a restart: %v", ids)
	}
}

func TestRunsAreCompared(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"fail.yaml": fails}).serve()
	good, bad := s.run("fail", `{"n": 1}`)["id"].(string), s.run("fail", `{"n": 2}`)["id"].(string)
	r := s.request("GET", "/v1/runs/"+good+"/compare?with="+bad, "")
	for _, want := range []string{`"input":[{"key":"n","change":"changed","from":1,"to":2}]`, `{"key":"m","change":"removed","from":2}`, `{"path":"n","a":{"status":"done"`, `"b":{"status":"failed"`, "the pump is broken"} {
		if !strings.Contains(r.text, want) {
			t.Errorf("no %s in %s", want, r)
		}
	}
	for query, want := range map[string]int{"": http.StatusNotFound, "?with=nosuch": http.StatusNotFound, "?to=x": http.StatusBadRequest} {
		if r := s.request("GET", "/v1/runs/"+good+"/compare"+query, ""); r.status != want {
			t.Errorf("%s: %s", query, r)
		}
	}
}

// pageBulk selects runs: the page compares, retries and deletes them, and reports the runs
// that it cannot change.
func pageBulk(t *testing.T, c *chromium) {
	s := newProject(t, map[string]string{"ask.yaml": ask, "fail.yaml": fails}).serve()
	good, bad, waits := s.run("fail", `{"n": 1}`)["id"].(string), s.run("fail", `{"n": 2}`)["id"].(string), s.run("ask", "{}")["id"].(string)
	b := c.open(t, s.url+"/#/runs")
	box := func(id string) string { return "document.querySelector('[aria-label=" + quote("Select "+id) + "]')" }
	b.await(box(good))
	b.await("document.querySelector('main tbody').innerText.includes('Go on?')")
	b.eval(box(good) + ".click()")
	b.eval(box(bad) + ".click()")
	b.accessible("selected")
	b.click("button", "Compare")
	b.await("document.querySelector('section[aria-label=Path] tbody').innerText.includes('failed')")
	b.await("document.querySelector('section[aria-label=Input] ins').textContent === '2'")
	b.accessible("compare")
	b.eval("history.back()")
	b.await(box(good))
	b.click("tbody [type=checkbox]", "")
	b.await("document.querySelectorAll('tbody :checked').length === 1")
	b.click("button", "Select all")
	b.click("button", "Delete …")
	b.has("This cannot be undone.")
	b.click("dialog button", "Delete")
	b.await("document.querySelector('dialog .notice').innerText.includes(" + quote("2 of 3 runs were changed. The others:\n"+waits+": the run is running, queued") + ")")
	b.accessible("not all deleted")
	b.click("dialog button", "Close")
	b.await("document.querySelectorAll('main tbody tr').length === 1 && " + box(waits) + ".checked")
	if r := s.request("GET", "/v1/runs/"+bad, ""); r.status != http.StatusNotFound {
		t.Errorf("deleted run: %s", r)
	}
	b.click("button", "Cancel …")
	b.click("dialog button", "Cancel")
	b.await("document.querySelector('main tbody .badge').innerText === 'stopped' && !document.querySelector('dialog')")
}

package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const askRelease = `
name: release
nodes:
  - name: ask
    uses: human.ask
    with:
      question: "Release **2.1**?"
      context: |
        The tests of ` + "`main`" + ` passed:

        - unit: 1200
        - browser: 14

        See [the log](https://ci.example/42) <img src=x onerror=alert(1)>
      attachments: [{name: changes.txt, text: "one\ntwo"}, {name: report, url: "https://ci.example/report"}, {name: bad, url: "javascript:alert(2)"}]
      choices: ["yes", "later"]
      timeout_seconds: 86400
      on_timeout: default
      default: later
    output: {answer: "{{ result.answer }}"}
`

func pageInbox(t *testing.T, c *chromium) {
	p := newProject(t, map[string]string{"release.yaml": askRelease, "order.yaml": order, "greet.yaml": greet})
	const token = "0123456789abcdef-of-ann"
	file := filepath.Join(p.home, "tokens")
	if err := os.WriteFile(file, []byte("run "+token+" ann\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := p.serve("--token-file", file)
	bearer := []string{"Authorization", "Bearer " + token}
	start := func(workflow, input string) string {
		t.Helper()
		r := s.request("POST", "/v1/workflows/"+workflow+"/runs?wait=60", `{"input": `+input+`}`, bearer...)
		id, _ := r.body["id"].(string)
		if id == "" {
			t.Fatalf("run: %s", r)
		}
		return id
	}
	b := c.open(t, s.url+"/#/inbox")
	b.fill("Token", token)
	b.click("dialog button", "Use")
	b.has("Nothing waits for an answer.")
	b.accessible("inbox-empty")
	orders, run := start("order", `{"count": 4}`), start("release", "{}")
	b.await("document.querySelector('#waiting').textContent === '2' && document.title === '(2) Inbox · tea'")
	b.await("document.querySelectorAll('.ask').length === 2 && document.querySelector('.ask h3 strong').textContent === '2.1'")
	b.await("document.querySelector('.ask .context ul').children.length === 2 && document.querySelectorAll('.ask .context a').length === 2")
	b.has("the answer is \"later\"")
	if b.eval("document.querySelectorAll('.ask img, .ask a[href^=javascript]').length") != "0" {
		t.Error("the context has become markup")
	}
	b.accessible("inbox")
	b.click(".ask button", "yes")
	b.await("document.querySelectorAll('.ask').length === 1 && document.querySelector('#waiting').textContent === '1'")
	r := s.request("GET", "/v1/runs/"+run+"?state=true", "", bearer...)
	for r.body["status"] != "done" {
		s.request("GET", "/v1/changes", "", bearer...)
		r = s.request("GET", "/v1/runs/"+run+"?state=true", "", bearer...)
	}
	at, err := time.Parse(time.RFC3339, fmt.Sprint(r.body["answered_at"].(map[string]any)["ask:ask"]))
	if by := fmt.Sprint(r.body["answered_by"]); by != "map[ask:ask:ann]" || err != nil || time.Since(at) > time.Hour {
		t.Errorf("answered by %s at %s: %v", by, at, err)
	}
	if state := fmt.Sprint(r.body["state"]); !strings.Contains(state, "answer:yes") {
		t.Errorf("state: %s", state)
	}
	b.click(".ask button", "no")
	b.has("Nothing waits for an answer.")
	b.await("document.querySelector('#waiting').hidden && document.title === 'Inbox · tea'")
	if r := s.request("GET", "/v1/runs/"+orders, "", bearer...); r.status != http.StatusOK || fmt.Sprint(r.body["answered_by"]) != "map[ask:ask:ann]" {
		t.Errorf("order: %s", r)
	}
}

// An idle page makes few requests.
func pageIdle(t *testing.T, c *chromium) {
	s := newProject(t, map[string]string{"greet.yaml": greet}).serve()
	id := s.run("greet", `{"name": "Ann"}`)["id"].(string)
	for _, view := range []string{"#/runs", "#/inbox", "#/runs/" + id} {
		b := c.open(t, s.url+"/"+view)
		b.await("performance.getEntriesByType('resource').some(e => e.name.includes('/v1/changes'))")
		b.eval("new Promise(done => setTimeout(done, 3000))") // requests that the first response triggers
		before := b.eval("performance.getEntriesByType('resource').length")
		b.eval("new Promise(done => setTimeout(done, 8000))")
		if after := b.eval("performance.getEntriesByType('resource').length"); after != before {
			t.Errorf("%s: %s requests, then %s", view, before, after)
		}
	}
}

func pageRuns(t *testing.T, c *chromium) {
	s := newProject(t, map[string]string{"greet.yaml": greet, "fail.yaml": "nodes: [{name: n, run: 'error(\"the pump is broken\")'}]\n"}).serve()
	s.run("greet", `{"name": "Ann"}`)
	failed := s.run("fail", "{}")["id"].(string)
	for query, want := range map[string]int{
		"": 2, "?q=PUMP+broken": 1, "?q=pump+nosuch": 0, "?q=" + failed: 1, "?q=greet&status=failed": 0, "?since=2026-01-01": 2, "?until=2026-01-01": 0, "?since=2100-01-01T00:00:00Z": 0,
	} {
		r := s.request("GET", "/v1/runs"+query, "")
		if list, _ := r.body["runs"].([]any); r.status != http.StatusOK || len(list) != want {
			t.Errorf("%s: %d runs, want %d: %s", query, len(list), want, r)
		}
	}
	if r := s.request("GET", "/v1/runs?since=yesterday", ""); r.status != http.StatusBadRequest {
		t.Errorf("since: %s", r)
	}
	b := c.open(t, s.url+"/#/runs?q=pump")
	b.await("document.querySelectorAll('main tbody tr').length === 1 && document.querySelector('main tbody').innerText.includes('the pump is broken')")
	b.accessible("runs")
	b.fill("Search", "nosuch")
	b.has("No run matches the filters.")
	b.await("location.hash === '#/runs?q=nosuch'")
	b.click("main a", "Show all runs")
	b.await("document.querySelectorAll('main tbody tr').length === 2 && location.hash === '#/runs'")
}

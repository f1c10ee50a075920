package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/client"
)

// pageSchedule shows the times of the next week, the outcome of past runs, and starts a
// schedule now.
func pageSchedule(t *testing.T, c *chromium) {
	s := newProject(t, map[string]string{
		"daily.yaml": "nodes: [{name: n, run: 'return {at = state.event.trigger}'}]\nserve: {triggers: [{cron: \"30 6 * * *\", name: morning}, {every: 600, name: often}]}\n",
		"greet.yaml": greet,
	}).serve()
	r := s.request("GET", "/v1/schedule", "")
	list, _ := r.body["triggers"].([]any)
	if len(list) != 2 {
		t.Fatalf("schedule: %s", r)
	}
	morning, often := list[0].(map[string]any), list[1].(map[string]any)
	if times := morning["times"].([]any); morning["trigger"] != "morning" || len(times) != 7 && len(times) != 8 { // a day of 25 hours
		t.Errorf("morning: %v", morning)
	}
	if times := often["times"].([]any); len(times) != 500 || often["more"] != true {
		t.Errorf("often: %d times", len(times))
	}
	first, err := time.Parse(time.RFC3339, morning["times"].([]any)[0].(string))
	if err != nil || first.Local().Format("15:04") != "06:30" {
		t.Errorf("first time: %v, %v", first, err)
	}
	b := c.open(t, s.url+"/#/schedule")
	b.await("document.querySelectorAll('main section').length >= 7 && document.querySelector('main section:nth-of-type(3)').innerText.includes('times, ')")
	b.has("No schedule has started a run yet.")
	b.await("document.querySelector('[aria-label=\"Run now: daily morning\"]')")
	b.eval("document.querySelector('[aria-label=\"Run now: daily morning\"]').click()")
	b.run()
	b.status("done")
	b.eval("history.back()")
	b.await("document.querySelector('main .scroll:last-child tbody .badge').innerText === 'done'")
	b.await("document.querySelector('[aria-label=\"Pause: daily morning\"]')")
	b.eval("document.querySelector('[aria-label=\"Pause: daily morning\"]').focus()")
	b.keys("\r")
	b.await("document.querySelector('main tbody tr').innerText.includes('paused') && document.activeElement.textContent === 'Resume'")
	b.accessible("schedule")
	b.keys("\r")
	b.await("!document.querySelector('main tbody tr').innerText.includes('paused') && document.activeElement.textContent === 'Pause'")
	for path, want := range map[string]int{"/v1/workflows/daily/triggers/none/run": http.StatusNotFound, "/v1/workflows/none/triggers/morning/run": http.StatusNotFound, "/v1/workflows/daily/triggers/none/pause": http.StatusNotFound, "/v1/workflows/daily/triggers/none/resume?x=1": http.StatusBadRequest} {
		if r := s.request("POST", path, ""); r.status != want {
			t.Errorf("%s: %s", path, r)
		}
	}
}

// A trigger stays paused over a restart and a change of its file, and the schedule says
// which starts were skipped.
func TestPausedTriggerStartsNothing(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	gate := filepath.Join(p.home, "gate")
	const often = "serve: {max_running: 1, overlap: skip, triggers: [{every: 1s, name: often}]}\n"
	p.write("block.yaml", block(gate)+often)
	tokens := filepath.Join(p.home, "tokens")
	for file, text := range map[string]string{tokens: "view 0123456789abcdef-of-a-viewer\nrun 0123456789abcdef-of-a-runner\n", tokens + "-run": "0123456789abcdef-of-a-runner\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := p.serve("--token-file", tokens)
	s.token = "0123456789abcdef-of-a-runner"
	c := newGoClient(t, s, client.Options{TokenFile: tokens + "-run"})
	skipped := func(reason string) client.ScheduledTrigger {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; <-time.After(50 * time.Millisecond) {
			list, err := c.Schedule(t.Context())
			if err != nil || len(list) != 1 {
				t.Fatalf("schedule: %v, %v", list, err)
			}
			if len(list[0].Skipped) > 0 && strings.Contains(list[0].Skipped[0].Reason, reason) {
				return list[0]
			}
			if time.Now().After(deadline) {
				t.Fatalf("schedule: %+v\n%s", list, s.log)
			}
		}
	}
	skipped("overlap is skip") // while its first run waits
	if err := c.Pause(t.Context(), "block", "often"); err != nil {
		t.Fatal(err)
	}
	if one := skipped("paused"); one.Paused == nil || len(one.Times) != 0 {
		t.Errorf("paused: %+v", one)
	}
	s.token = "0123456789abcdef-of-a-viewer"
	if r := s.request("POST", "/v1/workflows/block/triggers/often/resume", ""); r.status != http.StatusForbidden {
		t.Errorf("by a viewer: %s", r)
	}
	s.token = "0123456789abcdef-of-a-runner"
	open(t, gate)
	s.interrupt()
	s = p.serve("--token-file", tokens)
	s.token = "0123456789abcdef-of-a-runner"
	c = newGoClient(t, s, client.Options{TokenFile: tokens + "-run"})
	p.write("block.yaml", "# changed\n"+block(gate)+often)
	skipped("paused")
	before := s.request("GET", "/v1/runs", "").body["runs"].([]any)
	if w, err := c.Workflow(t.Context(), "block"); err != nil || w.Triggers[0].Paused == nil || w.Triggers[0].Next != nil || len(before) != 1 {
		t.Errorf("workflow: %+v, %v, %d runs", w, err, len(before))
	}
	if err := c.Unpause(t.Context(), "block", "often"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); len(s.request("GET", "/v1/runs", "").body["runs"].([]any)) == len(before); <-time.After(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the trigger is not resumed\n%s", s.log)
		}
	}
}

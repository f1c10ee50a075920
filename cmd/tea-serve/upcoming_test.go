package main

import (
	"net/http"
	"testing"
	"time"
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
	b.accessible("schedule")
	for path, want := range map[string]int{"/v1/workflows/daily/triggers/none/run": http.StatusNotFound, "/v1/workflows/none/triggers/morning/run": http.StatusNotFound} {
		if r := s.request("POST", path, ""); r.status != want {
			t.Errorf("%s: %s", path, r)
		}
	}
}

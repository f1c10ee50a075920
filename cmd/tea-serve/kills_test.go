package main

import (
	"fmt"
	"sync"
	"testing"

	"github.com/the-edge-agent/tea/test/teaproc"
)

// TestWebhooksAndSchedulesSurviveKills kills the server while webhooks come in and
// a schedule runs: each webhook that was answered has its run, no key has two, and
// each time of the schedule has one. TEA_KILLS sets the number of kills.
func TestWebhooksAndSchedulesSurviveKills(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{
		"hook.yaml": `
nodes: [{name: n, run: 'return {seen = true}'}]
serve:
  keep_runs: 1000000
  triggers: [{webhook: in, secret: HOOK, key: "{{ event.body.key }}"}]
`,
		"after.yaml": "nodes: [{name: n}]\nserve: {keep_runs: 1000000, triggers: [{on_run: hook, input: {key: \"{{ event.state.key }}\"}}]}\n",
		"tick.yaml":  "nodes: [{name: n}]\nserve: {keep_runs: 1000000, triggers: [{every: 1, catch_up: all, input: {at: \"{{ event.scheduled_at }}\"}}]}\n",
	})
	secrets := []string{"--secrets", `{"HOOK": "` + hookSecret + `"}`}
	const clients = 3
	var mu sync.Mutex
	accepted := map[string]string{} // run by key
	for round := range teaproc.Kills(t, 6) {
		s := p.serve(secrets...)
		dead, answered := make(chan struct{}), make(chan struct{}, 10_000)
		var wg sync.WaitGroup
		for c := range clients {
			wg.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-dead:
						return
					default:
					}
					key := fmt.Sprintf("%d-%d-%d", round, c, n)
					body := `{"key": "` + key + `"}`
					r, err := s.try("POST", "/hooks/in", body, "X-Signature", sign(body))
					if id, _ := r.body["id"].(string); err == nil && r.status < 300 {
						mu.Lock()
						accepted[key] = id
						mu.Unlock()
						answered <- struct{}{}
					}
				}
			})
		}
		for range 5 + round%17 {
			<-answered
		}
		s.kill()
		close(dead)
		wg.Wait()
	}
	s := p.serve(secrets...)
	for key, id := range accepted {
		if status := s.status(id); status != "done" {
			t.Errorf("key %s, run %s: %s", key, id, status)
		}
	}
	for _, c := range []struct{ workflow, field string }{{"hook", "key"}, {"after", "key"}, {"tick", "at"}} {
		values := s.values(c.workflow, c.field)
		for value, runs := range values {
			if len(runs) != 1 {
				t.Errorf("%s %s has the runs %v", c.workflow, value, runs)
			}
		}
		if len(values) < len(accepted) && c.workflow != "tick" || len(values) == 0 {
			t.Errorf("%s has %d runs, %d webhooks were accepted", c.workflow, len(values), len(accepted))
		}
		t.Logf("%s: %d runs", c.workflow, len(values))
	}
}

// values waits until all runs of a workflow are done and returns their ids by a
// field of their states.
func (s *service) values(workflow, field string) map[string][]string {
	s.t.Helper()
	out := map[string][]string{}
	for next := ""; ; {
		r := s.request("GET", "/v1/runs?limit=500&workflow="+workflow+"&after="+next, "")
		for _, run := range r.body["runs"].([]any) {
			id := run.(map[string]any)["id"].(string)
			if status := s.status(id); status != "done" {
				s.t.Errorf("run %s of %s: %s", id, workflow, status)
			}
			value := fmt.Sprint(s.request("GET", "/v1/runs/"+id+"/state", "").body[field])
			out[value] = append(out[value], id)
		}
		if next, _ = r.body["next"].(string); next == "" {
			return out
		}
	}
}

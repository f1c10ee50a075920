package main

import (
	"maps"
	"testing"

	"github.com/the-edge-agent/tea/test/teaproc"
)

// statuses counts the runs of a workflow by status.
func (s *service) statuses(workflow string) map[string]int {
	s.t.Helper()
	counts := map[string]int{}
	for _, run := range s.request("GET", "/v1/runs?limit=500&workflow="+workflow, "").body["runs"].([]any) {
		counts[run.(map[string]any)["status"].(string)]++
	}
	return counts
}

// awaitStatuses waits until a workflow has these runs.
func (s *service) awaitStatuses(workflow string, want map[string]int) {
	s.t.Helper()
	teaproc.Poll(s.t, func() (bool, any) {
		got := s.statuses(workflow)
		return maps.Equal(got, want), got
	})
}

// awaitStatus waits until a run has a status.
func (s *service) awaitStatus(run, want string) {
	s.t.Helper()
	teaproc.Poll(s.t, func() (bool, any) {
		r := s.request("GET", "/v1/runs/"+run, "")
		return r.body["status"] == want, r
	})
}

func TestOldRunsAreRemoved(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{
		"mixed.yaml": "nodes: [{name: n, run: 'if state.fail then error(\"no luck\") end return {}'}]\nserve: {keep_runs: 3}\n",
		"ask.yaml":   ask + "serve: {keep_runs: 1}\n",
		"brief.yaml": "nodes: [{name: n}]\nserve: {keep_seconds: 3}\n",
	})
	s := p.serve()
	for range 3 {
		s.run("ask", "{}")
	}
	s.run("brief", "{}")
	var last string
	for range 6 {
		s.run("mixed", "{}")
		last, _ = s.run("mixed", `{"fail": true}`)["id"].(string)
	}
	s.awaitStatuses("mixed", map[string]int{"done": 3, "failed": 3})
	if r := s.request("GET", "/v1/runs/"+last, ""); r.body["status"] != "failed" {
		t.Errorf("the newest run: %s", r)
	}
	s.kill()
	s = p.serve()
	s.run("mixed", `{"fail": true}`)
	s.run("mixed", "{}")
	s.awaitStatuses("mixed", map[string]int{"done": 3, "failed": 3})
	s.awaitStatuses("ask", map[string]int{"waiting": 3}) // which have not ended
	for len(s.statuses("brief")) > 0 {
		s.run("mixed", "{}")
	}
}

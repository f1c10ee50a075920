package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/client"
)

// paid is a workflow whose nodes use 5 tokens before a question and 2 after it.
const paid = `
nodes:
  - {name: before, run: 'return {usage = {total_tokens = 5}, cost_usd = 0.5}'}
  - {name: q, uses: human.ask, with: {question: "Go on?"}}
  - {name: after, run: 'if state.fail then error("no luck") end return {usage = {total_tokens = 2}}'}
serve: {keep_runs: 1}
`

// usage returns the usage of a workflow today.
func (s *service) usage(workflow string) client.DayUsage {
	s.t.Helper()
	c, err := client.New(s.url, client.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	days, err := c.Usage(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, u := range days {
		if u.Day == today() && u.Workflow == workflow {
			return u
		}
	}
	return client.DayUsage{}
}

// Tokens are counted once when a run continues: after an answer, a restart, a retry and
// in a fork.
func TestUsageIsCountedOnce(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"paid.yaml": paid})
	s := p.serve()
	check := func(when string, runs, failed, tokens int64, usd float64) {
		t.Helper()
		want := client.DayUsage{Day: today(), Workflow: "paid", Runs: runs, Failed: failed, Tokens: tokens, USD: usd}
		if diff := cmp.Diff(want, s.usage("paid")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	id := s.run("paid", `{"fail": true}`)["id"].(string)
	check("a run that waits", 0, 0, 5, 0.5)
	s.interrupt()
	s = p.serve()
	s.request("POST", "/v1/runs/"+id+"/resume?wait=60", `{"answers": {"q": "yes"}}`)
	check("an answer after a restart, and a failure", 1, 1, 5, 0.5)
	s.interrupt()
	s = p.serve()
	s.request("POST", "/v1/runs/"+id+"/retry?wait=60", "")
	check("a retry that fails", 2, 2, 5, 0.5)
	r := s.request("POST", "/v1/runs/"+id+"/fork?wait=60", `{"at": "before", "input": {"fail": false}}`)
	check("a fork", 2, 2, 5, 0.5)
	s.request("POST", "/v1/runs/"+r.body["id"].(string)+"/resume?wait=60", `{"answers": {"q": "yes"}}`)
	check("the end of the fork", 3, 2, 7, 0.5)
}

// The usage and the last run of a workflow are known when the runs were removed.
func TestUsageOutlivesRuns(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": greet + "serve: {keep_runs: 1}\n", "other.yaml": "nodes: [{name: n}]\n"})
	s := p.serve()
	for range 3 {
		s.run("greet", `{"name": "Ada"}`)
	}
	s.awaitStatuses("greet", map[string]int{"done": 1})
	last := s.run("greet", `{"name": "Ada"}`)["id"]
	for range 2 {
		if u := s.usage("greet"); u.Runs != 4 || u.Failed != 0 {
			t.Errorf("usage: %+v", u)
		}
		r := s.request("GET", "/v1/workflows/greet", "")
		if run, _ := r.body["last_run"].(map[string]any); run["id"] != last || run["status"] != "done" {
			t.Errorf("workflow: %s", r)
		}
		if r := s.request("GET", "/v1/workflows/other", ""); r.body["last_run"] != nil {
			t.Errorf("workflow without runs: %s", r)
		}
		s.kill()
		s = p.serve()
	}
}

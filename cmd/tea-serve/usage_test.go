package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
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
	begin := time.Now()
	check := func(when string, runs, failed, tokens int64, usd float64) {
		t.Helper()
		want := client.DayUsage{Day: today(), Workflow: "paid", Runs: runs, Failed: failed, Tokens: tokens, USD: usd}
		got := s.usage("paid")
		if got.Seconds <= 0 || got.Seconds > time.Since(begin).Seconds() {
			t.Errorf("%s: %g seconds", when, got.Seconds)
		}
		got.Seconds = 0
		if diff := cmp.Diff(want, got); diff != "" {
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

// pageUsage draws the usage of days, and of a workflow that is chosen.
func pageUsage(t *testing.T, c *chromium) {
	s := newProject(t, map[string]string{"greet.yaml": greet, "fail.yaml": "nodes: [{name: n, run: 'error(\"no\")'}]\n"}).serve()
	b := c.open(t, s.url+"/#/usage")
	b.has("No run has ended in this time.")
	b.accessible("usage empty")
	for range 3 {
		s.run("greet", `{"name": "Ada"}`)
	}
	s.run("fail", "{}")
	label := func(measure string) string {
		return "document.querySelector('[data-measure=\"" + measure + "\"] svg').getAttribute('aria-label')"
	}
	b.await(label("Runs") + " === 'Runs by day: 4 in all, at most 4 on " + today() + "'")
	b.await(label("Failed") + " === 'Failed by day: 1 in all, at most 1 on " + today() + "'")
	b.await(label("Running time") + ".includes('ms in all, at most')")
	b.await("document.querySelectorAll('[data-measure=Runs] .bar').length === 30")
	b.accessible("usage")
	b.fill("Workflow", "greet")
	b.fill("Time", "7 days")
	b.await(label("Runs") + " === 'Runs by day: 3 in all, at most 3 on " + today() + "'")
	b.await(label("Failed") + " === 'Failed by day: 0 in all'")
	b.await("location.hash === '#/usage?days=7&workflow=greet'")
	b.reload()
	b.await(label("Runs") + ".includes('3 in all') && document.querySelectorAll('[data-measure=Runs] .bar').length === 7")
}

// pageEmpty opens views of a server without workflows: they say what to do next. What is
// shown does not move when the content arrives.
func pageEmpty(t *testing.T, c *chromium) {
	p := newProject(t, nil)
	s := p.serve()
	b := c.open(t, s.url)
	for view, want := range map[string]string{
		"#/": "Put a YAML file with a workflow into it", "#/runs": "Start one from its workflow.", "#/inbox": "Questions of human.ask", "#/schedule": "appear here.", "#/plugins": "Plugins start with the first call",
	} {
		b.eval("location.hash = " + quote(view))
		b.has(want)
		b.accessible("empty " + view[2:])
	}
	p.write("ask.yaml", ask)
	b.eval("location.hash = '#/workflows/ask'")
	b.has("Start one with the form above.")
	b.accessible("empty workflow")
	id := s.run("ask", "{}")["id"].(string)
	for view, shown := range map[string]string{
		"#/": "main tbody", "#/runs": "main tbody", "#/inbox": ".ask", "#/workflows/ask": ".graph", "#/runs/" + id: ".graph g.waiting", "#/usage": ".chart",
	} {
		b := c.open(t, s.url+"/healthz")
		if err := chromedp.Do(b.ctx, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(s.url+"/"+view)); err != nil {
			t.Fatal(err)
		}
		b.await("document.querySelector(" + quote(shown) + ")")
		b.eval("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
		moved := b.eval(`new Promise(done => {
			new PerformanceObserver(list => done(list.getEntries().map(e => [e.value, ...e.sources.map(s => s.node?.outerHTML?.slice(0, 80))]))).observe({type: "layout-shift", buffered: true})
			setTimeout(() => done([]), 500)
		})`)
		var shifts [][]any
		if err := json.Unmarshal([]byte(moved), &shifts); err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, shift := range shifts {
			sum += shift[0].(float64)
		}
		if sum > 0.1 { // good, as Web Vitals define it
			t.Errorf("%s: the layout shifts by %.3f: %s", view, sum, moved)
		}
	}
}

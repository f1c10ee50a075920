package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// report writes the report of a run to a file, and returns its URL.
func (p *project) report(run string) string {
	p.t.Helper()
	var page bytes.Buffer
	log := newLogs()
	cmd := p.command(log, "runs", "show", "--html", run)
	cmd.Stdout = &page
	if err := cmd.Run(); err != nil {
		p.t.Fatalf("report: %v\n%s", err, log)
	}
	if i := bytes.IndexAny(page.Bytes(), "\x1b\x07\u009b\u202e"); i >= 0 {
		p.t.Errorf("the report has a control character: %q", page.Bytes()[max(i-20, 0):i+20])
	}
	file := filepath.Join(p.home, run+".html")
	if err := os.WriteFile(file, page.Bytes(), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return "file://" + file
}

// The report of a run shows what the page shows, and nothing of the run is markup.
func pageReport(t *testing.T, c *chromium) {
	const evil = `<img src=x onerror=alert(1)></script><script>alert(2)</script>`
	p := newProject(t, map[string]string{
		"evil.yaml": `
name: 'e"><img src=x onerror=alert(3)>'
nodes:
  - {name: 'n <script>alert(4)<\script>', run: 'tea.log("warn", "` + evil + `\27[2J\194\155\226\128\174") return {["` + evil + `"] = 1}'}
  - {name: fail, run: 'error("` + evil + `")'}
`,
		"order.yaml": order,
		"each.yaml": `
nodes:
  - {name: work, type: dynamic_parallel, items: [1, 2, 3], item_var: item, fan_in: join, steps: [{name: double, run: 'if item == 2 then error("odd") end return {y = 1}'}, {name: after, run: 'return {}'}]}
  - {name: join, run: 'return {n = #parallel_results}'}
  - {name: skipped, if: "false", run: 'return {}'}
  - {name: ask, uses: human.ask, with: {question: "Go on?"}}
  - {name: last, run: 'return {}'}
`,
	})
	s := p.serve()
	started := s.request("POST", "/v1/workflows/e%22%3E%3Cimg%20src=x%20onerror=alert(3)%3E/runs?wait=600", "{}")
	if started.body["status"] != "failed" {
		t.Fatalf("run: %s", started)
	}
	b := c.open(t, p.report(started.body["id"].(string)))
	b.status("failed")
	b.has(`e"><img src=x onerror=alert(3)>`)
	b.await("document.querySelector('.errors').textContent.includes(" + quote(evil) + ")")
	b.await("document.querySelectorAll('.graph g.failed').length === 1")
	b.click("button", "+")
	if n := b.eval("document.querySelectorAll('main img, main script, main iframe, main [onerror]').length"); n != "0" {
		t.Errorf("the report has %s elements of the run", n)
	}
	b.eval(`{const field = document.querySelector("input[aria-label='Search events and logs']")
		field.value = "run_end"
		field.dispatchEvent(new Event("input"))}`)
	b.await("[...document.querySelectorAll('[data-event]')].every(e => e.dataset.event === 'run_end')")

	waiting := s.run("order", `{"count": 4}`)
	b = c.open(t, p.report(waiting["id"].(string)))
	b.status("waiting")
	b.has("Order 4 for 12?")
	b.await("document.querySelectorAll('.graph g.waiting').length === 1 && document.querySelectorAll('.graph g.unreached').length >= 1")
	// The drawing has statuses that the server has computed, which the report replaces
	// by its own.
	id := s.run("each", "{}")["id"].(string)
	b = c.open(t, p.report(id))
	b.status("waiting")
	b.await("document.querySelectorAll('.graph g[aria-label]').length >= 5")
	drawn := regexp.MustCompile(`<g class="[a-z ]*\b(running|waiting|failed|stopped|done|skipped|unreached)"`)
	var want []string
	for _, m := range drawn.FindAllStringSubmatch(s.request("GET", "/v1/runs/"+id+"/graph.svg", "").text, -1) {
		want = append(want, m[1])
	}
	shown := b.eval("[...document.querySelectorAll('.graph g[aria-label]')].map(g => [...g.classList].find(c => ['running', 'waiting', 'failed', 'stopped', 'done', 'skipped', 'unreached'].includes(c))).join(' ')")
	if diff := cmp.Diff(strings.Join(want, " "), strings.Trim(shown, `"`)); diff != "" {
		t.Errorf("statuses (-server +report):\n%s", diff)
	}
	if dir := os.Getenv("TEA_SCREENSHOTS"); dir != "" {
		b.shot(filepath.Join(dir, "report.png"))
	}
}

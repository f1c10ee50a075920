package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pageSource shows the text of the workflow as it was when the run began, with the line
// that failed, and the status of a node whose name is cut off in the drawing.
func pageSource(t *testing.T, c *chromium) {
	long := strings.Repeat("a long name ", 8) + "end"
	text := "# The orders of a day.\nnodes:\n  - {name: \"" + long + "\", run: 'return {n = 1}'}\n  - name: work\n    type: while_loop\n    condition: state.n < 5\n    max_iterations: 5\n    body:\n      - name: add\n        run: |\n          local m = state.n + 1\n          if m > 2 then error(\"odd\") end\n          return {n = m}\n      - {name: after, run: 'return {}'}\n"
	p := newProject(t, map[string]string{"orders.yaml": text + "# hidden-token\n"})
	s := p.serve("--secrets", `{"token": "hidden-token"}`)
	id := s.run("orders", "{}")["id"].(string)
	offered := strings.Count(s.log.String(), "workflow offered")
	p.write("orders.yaml", "# new\n\n"+strings.Replace(text, "n = 1", "n = 0", 1))
	s.log.Until(t, "workflow offered", func() bool { return strings.Count(s.log.String(), "workflow offered") > offered })
	r := s.request("GET", "/v1/runs/"+id+"/source", "")
	lines, _ := r.body["lines"].(map[string]any)
	if !strings.HasPrefix(r.body["text"].(string), text) || lines["work/add"] != 9.0 || lines["work"] != 4.0 || r.body["changed"] != nil || strings.Contains(r.text, "hidden-token") {
		t.Errorf("source: %s", r)
	}
	for _, url := range []string{s.url + "/#/runs/" + id, p.report(id)} {
		b := c.open(t, url)
		b.status("failed")
		b.await("document.querySelector('.source .failing').textContent.includes('if m > 2 then error')")
		b.await("[...document.querySelectorAll('.source .here')].length === 4")
		b.await("[...document.querySelectorAll('.graph g.done')].some(g => g.getAttribute('aria-label') === " + quote(long+" "+long[:59]+"… lua: done") + " && g.querySelector('title').textContent === " + quote(long) + ")")
		b.eval("[...document.querySelectorAll('.graph [role=button]')].find(e => e.textContent === 'work').focus()")
		b.keys("\r")
		b.await("document.querySelector('.node h3').innerText.includes('work ') && document.querySelectorAll('.source .here').length === 10")
		b.eval("document.querySelector('.source').focus()")
		b.await("document.activeElement.className === 'source'")
		b.accessible("source")
	}
	// Without the text of the run, the page says so.
	if err := os.RemoveAll(filepath.Join(p.home, "tea", "runs", "sources")); err != nil {
		t.Fatal(err)
	}
	b := c.open(t, s.url+"/#/runs/"+id)
	b.has("orders.yaml has changed since the run began.")
}

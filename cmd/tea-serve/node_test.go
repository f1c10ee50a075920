package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// accessible checks the page with axe-core at phone and desktop size, in both colour
// schemes. It stores screenshots in the directory TEA_SCREENSHOTS, if set.
func (b *tab) accessible(name string) {
	b.t.Helper()
	axe, err := os.ReadFile(filepath.Join(peertest.Dir(b.t, "../..", "axe"), "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		b.t.Fatal(err)
	}
	b.eval("{" + string(axe) + "}")
	for _, width := range []int{360, 768, 1440} {
		for _, scheme := range []string{"light", "dark"} {
			media := func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
				_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
				return chromedp.Void{}, err
			}
			if err := chromedp.Do(b.ctx, chromedp.EmulateViewport(int64(width), 900), media); err != nil {
				b.t.Fatal(err)
			}
			where := fmt.Sprintf("%s-%s-%d", name, scheme, width)
			const run = `{
				const found = await axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]})
				return found.violations.map(v => v.id + ": " + v.nodes.map(n => n.target + " " + n.failureSummary).slice(0, 3).join("; "))
			}`
			if found := b.eval(run); found != "[]" {
				b.t.Errorf("%s: %s", where, found)
			}
			if wide := b.eval("document.documentElement.scrollWidth"); wide != fmt.Sprint(width) {
				b.t.Errorf("%s: the page is %s wide", where, wide)
			}
			if dir := os.Getenv("TEA_SCREENSHOTS"); dir != "" {
				b.shot(filepath.Join(dir, where+".png"))
			}
		}
	}
}

// pageFailed opens a failed run: the page shows the node that failed, and its params.
func pageFailed(t *testing.T, c *chromium) {
	p := newProject(t, map[string]string{"orders.yaml": `
name: orders
description: Imports the orders of the day.
nodes:
  - {name: list, run: 'tea.log("info", "reads the list") local t = {} for i = 1, 1000 do t[i] = "order " .. i end return {items = t}'}
  - {name: work, type: dynamic_parallel, items: "{{ state.items }}", item_var: item, fan_in: join, steps: [{name: double, run: 'if item == "order 731" then error("odd number") end return {y = 1}'}]}
  - {name: join, run: 'return {n = #parallel_results, items = {}}'}
  - {name: read, uses: file.read, retry: {max_retries: 1, backoff_base_ms: 20, retry_on: [not_found]}, with: {path: "orders/{{ secrets.folder }}/{{ state.n }}.csv"}, output: {text: "{{ result.content }}"}}
  - {name: send, run: 'return {sent = true}'}
`})
	s := p.serve("--secrets", `{"folder": "hidden-folder"}`)
	id := s.run("orders", "{}")["id"].(string)
	b := c.open(t, s.url+"/#/runs/"+id)
	b.status("failed")
	b.await("document.querySelector('.node h3').innerText.includes('read')")
	b.await("document.querySelector('.node .errors').innerText.includes('not_found')")
	b.await("document.querySelector('.node .attempts').innerText.includes('Attempt 1 failed, then waited')")
	b.await("document.querySelector('.node > details .members').innerText.includes('orders/***/1000.csv')")
	b.accessible("failed")
	b.click("[aria-label=Timeline] .row", "work")
	b.await("document.querySelectorAll('.grid button').length === 1 && document.querySelector('.grid button').textContent === '730'")
	b.click(".items button", "all 1000")
	b.await("document.querySelectorAll('.grid button').length === 300")
	b.click(".items button", "Next")
	b.has("301 to 600 of 1000")
	b.accessible("items")
	b.click(".items button", "failed 1")
	b.click(".grid button", "730")
	b.await("document.querySelector('.node h3').innerText.includes('work[730]/double') && document.querySelector('.node .errors').innerText.includes('odd number')")
	if r := s.request("GET", "/v1/runs/"+id+"/node?at=read", ""); r.status != http.StatusOK || strings.Contains(r.text, "hidden-folder") || !strings.Contains(r.text, `"attempt":1`) {
		t.Errorf("node: %s", r)
	}
	for target, want := range map[string]int{"/node?at=nosuch": http.StatusNotFound, "/node?to=read": http.StatusBadRequest} {
		if r := s.request("GET", "/v1/runs/"+id+target, ""); r.status != want {
			t.Errorf("%s: %s", target, r)
		}
	}
}

// pageTalk opens a run with a model call: the page shows its messages.
func pageTalk(t *testing.T, c *chromium) {
	p := newProject(t, map[string]string{"talk.yaml": `
name: talk
nodes:
  - name: say
    run: |
      return {success = true, content = "It is Paris.", messages = {
        {role = "system", content = "Answer briefly."},
        {role = "user", content = "What is the capital of France?"},
        {role = "assistant", reasoning = "The atlas knows.", tool_calls = {{id = "1", ["function"] = {name = "atlas", arguments = "{}"}}}},
        {role = "tool", content = "Paris"},
        {role = "assistant", content = "It is Paris.\nOn the Seine."},
      }}
`})
	s := p.serve()
	id := s.run("talk", "{}")["id"].(string)
	b := c.open(t, s.url+"/#/runs/"+id)
	b.click("[aria-label=Timeline] .row", "say")
	b.await("document.querySelectorAll('.talk li').length === 5")
	b.await("document.querySelector('.talk [data-role=user]').innerText.includes('capital of France')")
	b.await("document.querySelector('.talk li:last-child').innerText.includes('On the Seine.')")
	b.await("!document.querySelector('.talk [data-role=system] details').open && !document.querySelector('.talk li:nth-child(3) details').open")
	b.accessible("conversation")
}

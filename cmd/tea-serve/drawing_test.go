package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// pageDrawing opens a run with a long graph: the drawing fits the window, can be zoomed,
// and shows which edges were taken; the timeline shows waiting apart from running.
func pageDrawing(t *testing.T, c *chromium) {
	var nodes strings.Builder
	for i := range 20 {
		fmt.Fprintf(&nodes, "  - {name: step%d, run: 'return {n = %d}'}\n", i, i)
	}
	s := newProject(t, map[string]string{"long.yaml": `
nodes:
  - {name: check, run: 'return {ok = true}', goto: [{if: "state.ok", to: step0}]}
  - {name: repair, run: 'return {repaired = true}'}
` + nodes.String() + `
  - {name: ask, uses: human.ask, with: {question: "Go on?", choices: ["yes"]}}
  - {name: last, run: 'return {z = 1}'}
`}).serve()
	id := s.run("long", "{}")["id"].(string)
	b := c.open(t, s.url+"/#/runs/"+id)
	b.status("waiting")
	const svg = "document.querySelector('.graph svg')"
	b.await(svg + ".getBoundingClientRect().width <= document.querySelector('.graph').clientWidth")
	edge := func(from, to string) string {
		return svg + ".querySelector('[data-from=" + from + "][data-to=" + to + "]').classList.contains('taken')"
	}
	b.await(edge("__start__", "check") + " && " + edge("check", "step0") + " && !" + edge("repair", "step0") + " && !" + edge("ask", "last") + " && " + edge("step18", "step19"))
	// The node that waits is in view.
	b.await("(() => { const box = document.querySelector('.graph g.waiting').getBoundingClientRect(), view = document.querySelector('.graph').getBoundingClientRect(); return box.top >= view.top && box.bottom <= view.bottom })()")
	before := b.eval(svg + ".getBoundingClientRect().width")
	b.click(".tools button", "+")
	b.await(svg + ".getBoundingClientRect().width > 1.2 * " + before)
	b.click(".tools button", "Fit")
	b.await(svg + ".getBoundingClientRect().height <= document.querySelector('.graph').clientHeight")
	tall := b.eval(svg + ".getBoundingClientRect().height")
	b.eval("[...document.querySelectorAll('.tools button')].find(e => e.textContent === 'Horizontal').focus()")
	b.keys("\r")
	b.await(svg + ".getBoundingClientRect().width > " + svg + ".getBoundingClientRect().height && " + svg + ".getBoundingClientRect().height < " + tall + " / 2 && document.activeElement.textContent === 'Horizontal'")
	b.await("document.querySelector('.graph g.waiting .name').textContent === 'ask' && " + edge("step18", "step19"))
	b.accessible("horizontal")
	b.click(".tools button", "Horizontal")
	b.await(svg + ".getBoundingClientRect().width < " + svg + ".getBoundingClientRect().height")
	b.await("document.querySelectorAll('.axis .bar span').length === 5")
	b.click(".questions button", "yes")
	b.status("done")
	b.await(edge("ask", "last") + " && " + edge("last", "__end__"))
	b.fillSearch("Search nodes", "ask")
	b.await("document.querySelector('.row .bar .wait') && document.querySelector('.row .time').innerText.includes('waiting')")
	b.accessible("drawing")
}

// pageCollapse hides the insides of nodes, on the page and in a report.
func pageCollapse(t *testing.T, c *chromium) {
	p := newProject(t, map[string]string{"each.yaml": `
nodes:
  - {name: work, type: dynamic_parallel, items: [1, 2], item_var: item, fan_in: join, steps: [{name: double, run: 'return {y = 1}'}]}
  - {name: join, run: 'return {n = 0}'}
  - {name: repeat, type: while_loop, condition: state.n < 2, max_iterations: 3, body: [{name: add, run: 'return {n = state.n + 1}'}]}
`})
	s := p.serve()
	id := s.run("each", "{}")["id"].(string)
	for _, url := range []string{s.url + "/#/runs/" + id, p.report(id)} {
		b := c.open(t, url)
		b.status("done")
		const names = "[...document.querySelectorAll('.graph .name')].map(e => e.textContent).join(' ')"
		b.await(names + " === 'start work join repeat start add end end' || " + names + ".includes('add')")
		b.click(".tools button", "Collapse")
		b.await("!" + names + ".includes('add') && document.querySelector('.graph g.loop.done') && document.querySelector('.graph g.map.done') && document.querySelector('.tools [aria-pressed=true]').textContent === 'Collapse'")
		b.has("1 inside")
		b.click(".tools button", "Horizontal")
		b.await("!" + names + ".includes('add') && document.querySelectorAll('.tools [aria-pressed=true]').length === 2")
		b.click(".tools button", "Collapse")
		b.await(names + ".includes('add')")
	}
	if r := s.request("GET", "/v1/runs/"+id+"/graph.svg?horizontal=yes", ""); r.status != http.StatusBadRequest {
		t.Errorf("horizontal=yes: %s", r)
	}
}

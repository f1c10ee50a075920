package main

import (
	"fmt"
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
	b.await(svg + ".getBoundingClientRect().width === " + before)
	b.await("document.querySelectorAll('.axis .bar span').length === 5")
	b.click(".questions button", "yes")
	b.status("done")
	b.await(edge("ask", "last") + " && " + edge("last", "__end__"))
	b.fillSearch("Search nodes", "ask")
	b.await("document.querySelector('.row .bar .wait') && document.querySelector('.row .time').innerText.includes('waiting')")
	b.accessible("drawing")
}

package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// shownOrders is the workflow of the pictures.
const shownOrders = `
description: Imports the orders of the day and asks before it sends them.
state_schema: {orders: {type: list, description: The numbers of the orders}}
nodes:
  - {name: plan, run: 'return {rows = #state.orders}'}
  - {name: prices, type: dynamic_parallel, items: "{{ state.orders }}", item_var: order, fan_in: total, steps: [{name: price, run: 'return {price = order * 3}'}]}
  - {name: total, run: 'local sum = 0 for _, n in ipairs(state.orders) do sum = sum + n * 3 end tea.log("info", "the total is " .. sum) return {total = sum}'}
  - name: approve
    uses: human.ask
    with: {question: "Send {{ state.rows }} orders for {{ state.total }} euros?", choices: ["yes", "no"]}
    output: {approved: "{{ result.answer }}"}
  - {name: send, if: "state.approved == 'yes'", run: 'return {sent = state.rows}'}
  - {name: report, uses: file.write, with: {path: report.md, content: "# Orders\n\n- **{{ state.rows }}** orders\n- **{{ state.total }}** euros\n"}}
`

// TestScreenshots stores the pictures of the guide in the directory TEA_GUIDE_SCREENSHOTS.
// scripts/screenshots runs it.
func TestScreenshots(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("TEA_GUIDE_SCREENSHOTS")
	if dir == "" {
		t.Skip("run scripts/screenshots")
	}
	c := startChromium(t)
	s := newProject(t, map[string]string{"orders.yaml": shownOrders}).serve()
	id := s.run("orders", `{"orders": [12, 7, 30, 4, 18]}`)["id"].(string)
	b := c.open(t, s.url+"/#/runs/"+id)
	b.status("waiting")
	b.await("document.querySelector('.graph g.waiting')")
	b.click("section[aria-label=Timeline] .row", "total")
	b.await("document.querySelector('.node h3').innerText.includes('total')")
	for _, scheme := range []string{"light", "dark"} {
		media := func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
			_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
			return chromedp.Void{}, err
		}
		if err := chromedp.Do(b.ctx, chromedp.EmulateViewport(1280, 1000), media); err != nil {
			t.Fatal(err)
		}
		b.eval("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
		picture, err := chromedp.Call(b.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatWebp, Quality: new(int64(80))})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "page-"+scheme+".webp"), picture.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

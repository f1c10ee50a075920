package main

import (
	"compress/gzip"
	"context"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// maxPage is the size of all files of the page over the wire.
const maxPage = 300 << 10

func TestPageIsSmallAndHasStrictPolicy(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"greet.yaml": greet}).serve()
	index := s.request("GET", "/", "")
	if index.status != http.StatusOK || index.header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("page: %s", index)
	}
	policy := index.header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy has no %s: %s", want, policy)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
		t.Errorf("policy: %s", policy)
	}
	sent := 0
	for _, m := range append([][]string{{"", "/"}}, regexp.MustCompile(`(?:src|href)="(/[^"]*)"`).FindAllStringSubmatch(index.text, -1)...) {
		r := s.request("GET", m[1], "", "Accept-Encoding", "gzip")
		z, err := gzip.NewReader(strings.NewReader(r.text))
		if err != nil {
			t.Fatalf("%s: %v", m[1], err)
		}
		if _, err := io.Copy(io.Discard, z); err != nil {
			t.Fatalf("%s: %v", m[1], err)
		}
		if r.header.Get("Content-Security-Policy") != policy || r.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", m[1], r.header)
		}
		if again := s.request("GET", m[1], "", "If-None-Match", r.header.Get("ETag")); again.status != http.StatusNotModified {
			t.Errorf("%s again: %d", m[1], again.status)
		}
		sent += len(r.text)
	}
	if sent > maxPage {
		t.Errorf("the page has %d bytes over the wire; want at most %d", sent, maxPage)
	}
	for _, path := range []string{"/page/none.js", "/page/", "/page/..%2f..%2fpage.go", "/index.html"} {
		if r := s.request("GET", path, ""); r.status != http.StatusNotFound || r.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %s", path, r)
		}
	}
}

func TestChangesOfSteps(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"ask.yaml": ask}).serve()
	id := s.run("ask", "{}")["id"].(string)
	for at, want := range map[string]string{
		"?at=first": `"path":"first"`, "?at=1": `"step":1,"kind":"start"`, "": `"after":{`,
	} {
		if r := s.request("GET", "/v1/runs/"+id+"/changes"+at, ""); r.status != http.StatusOK || !strings.Contains(r.text, want) {
			t.Errorf("%s: %s", at, r)
		}
	}
	r := s.request("GET", "/v1/runs/"+id+"/changes?at=first", "")
	if !strings.Contains(r.text, `"before":{}`) || !strings.Contains(r.text, `"after":{"n":1}`) {
		t.Errorf("first: %s", r)
	}
	for at, want := range map[string]int{"?at=none": http.StatusNotFound, "?at=99": http.StatusNotFound, "?to=1": http.StatusBadRequest} {
		if r := s.request("GET", "/v1/runs/"+id+"/changes"+at, ""); r.status != want {
			t.Errorf("%s: %s", at, r)
		}
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	c := startChromium(t)
	for name, test := range map[string]func(*testing.T, *chromium){
		"starts, watches, answers and forks": pageAnswers,
		"forms of schemas":                   pageForms,
		"cancels":                            pageCancels,
		"retries":                            pageRetries,
		"hostile names and outputs":          pageHostile,
		"a connection cut and back":          pageConnection,
		"in the background":                  pageHidden,
		"names with marks of paths":          pageMarks,
		"token":                              pageToken,
		"a map of 10,000 items":              pageMap,
		"plugins":                            pagePlugins,
		"notifications":                      pagePush,
		"phone, colours and keyboard":        pagePhone,
		"report":                             pageReport,
		"a list of runs":                     pageRuns,
		"several runs":                       pageBulk,
		"a long graph":                       pageDrawing,
		"a collapsed graph":                  pageCollapse,
		"schedule":                           pageSchedule,
		"inbox":                              pageInbox,
		"an idle page":                       pageIdle,
		"why a run failed":                   pageFailed,
		"the text of the workflow":           pageSource,
		"a conversation":                     pageTalk,
		"the result of a run":                pageResult,
		"memory":                             pageMemory,
		"offline":                            pageOffline,
		"log out":                            pageLogout,
		"usage":                              pageUsage,
		"empty":                              pageEmpty,
		"installs":                           pageInstalls,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

const order = `
description: Orders bearings.
state_schema: {count: {type: int, description: "How many bearings"}, part: str}
initial_state: {part: ball}
nodes:
  - {name: price, run: 'return {price = state.count * 3}'}
  - {name: ask, uses: human.ask, with: {question: "Order {{ state.count }} for {{ state.price }}?", choices: ["yes", "no"]}, output: {answer: "{{ result.answer }}"}}
  - {name: send, if: "state.answer == 'yes'", run: 'return {sent = state.count}'}
`

func pageAnswers(t *testing.T, c *chromium) {
	s := newProject(t, map[string]string{"order.yaml": order, "bad.yaml": "nodes: [{name: n, uses: jsn.parse}]"}).serve()
	b := c.open(t, s.url)
	b.has("jsn.parse")
	b.click("td a", "order")
	b.fill("count", "4")
	b.click("button", "Start")
	id := b.run()
	b.status("waiting")
	b.has("Order 4 for 12?")
	b.await("document.querySelector('.graph g.waiting .name').textContent === 'ask'")
	b.await("document.querySelector('.graph g.unreached .name').textContent === 'send'")
	b.click("section button", "price")
	b.await("document.querySelector('section[aria-label=State] tbody tr').innerText.includes('price')")
	b.await("document.querySelector('section[aria-label=State] ins').textContent === '12'")
	b.click(".questions button", "yes")
	b.status("done")
	b.await("document.querySelectorAll('.graph g.done').length === 3")
	b.has("run_end")
	if state := s.request("GET", "/v1/runs/"+id+"/state", "").text; !strings.Contains(state, `"sent":4`) || !strings.Contains(state, `"part":"ball"`) {
		t.Errorf("state: %s", state)
	}
	b.click("button", "Fork …")
	b.fill("After step", "price")
	b.fill("Input", `{"count": 12345678901234567890}`)
	b.click("dialog button", "Fork")
	b.await("location.hash !== " + quote("#/runs/"+id))
	b.has("Order 12345678901234567890 for 12?")
	b.has("Copy of")
	b.click(".questions button", "no")
	b.status("done")
	b.await("document.querySelector('.graph g.skipped .name').textContent === 'send'")
	b.click("nav a", "Runs")
	b.await("document.querySelectorAll('main tbody tr').length === 2")
	b.click("nav a", "Usage")
	b.await("document.querySelector('main tbody tr').innerText.includes('order')")
	b.click("nav a", "Plugins")
	b.has("No plugin is running")
}

func pageForms(t *testing.T, c *chromium) {
	s := newProject(t, map[string]string{"ask.yaml": `
nodes:
  - name: ask
    uses: human.ask
    with:
      question: How?
      schema: {type: object, required: [ok], properties: {ok: {type: boolean}, n: {type: integer, description: a number}, kind: {enum: [a, b]}, note: {type: string}, tags: {type: array, items: {type: string}}}}
    output: {all: "{{ result.answer }}"}
  - {name: stop, interrupt: before}
`}).serve()
	id := s.run("ask", "{}")["id"].(string)
	b := c.open(t, s.url+"/#/runs/"+id)
	b.fill("ok", "true")
	b.fill("n", "two")
	b.click("button", "Answer")
	b.has("n: expected a number, got two")
	b.fill("n", "123456789012345678")
	b.fill("kind", "b")
	b.fill("note", "two\nlines")
	b.fill("tags", `["x"]`)
	b.click("button", "Answer")
	b.click(".questions button", "Continue")
	b.status("done")
	const want = `"all":{"kind":"b","n":123456789012345678,"note":"two\nlines","ok":true,"tags":["x"]}`
	if state := s.request("GET", "/v1/runs/"+id+"/state", "").text; !strings.Contains(state, want) {
		t.Errorf("state: %s", state)
	}
}

func pageCancels(t *testing.T, c *chromium) {
	p := newProject(t, nil)
	p.write("block.yaml", block(filepath.Join(p.home, "gate")))
	s := p.serve()
	id := s.started()
	b := c.open(t, s.url+"/#/runs/"+id)
	b.status("running")
	b.await("document.querySelector('.graph g.running')")
	b.click("button", "Cancel")
	b.status("stopped")
	b.has("stopped by a request")
}

func pageRetries(t *testing.T, c *chromium) {
	p := newProject(t, map[string]string{"read.yaml": `
nodes: [{name: read, uses: file.read, with: {path: there.txt}, output: {text: "{{ result.content }}"}}]
`})
	s := p.serve()
	id := s.run("read", "{}")["id"].(string)
	b := c.open(t, s.url+"/#/runs/"+id)
	b.status("failed")
	b.await("document.querySelector('.errors').innerText.includes('there.txt')")
	p.write("there.txt", "now")
	b.click("button", "Retry")
	b.status("done")
	b.await("document.querySelector('.graph g.done .name').textContent === 'read'")
}

func pageHostile(t *testing.T, c *chromium) {
	const evil = `<img src=x onerror=alert(1)><script>alert(2)</script>`
	p := newProject(t, map[string]string{"evil.yaml": `
name: 'e"><img src=x onerror=alert(3)>'
description: '` + evil + `'
state_schema: {"k<b>": {type: str, description: '` + evil + `'}}
nodes:
  - {name: 'n <script>alert(4)<\script>', description: '` + evil + `', run: 'tea.log("warn", "` + evil + `") return {["` + evil + `"] = "` + evil + `"}'}
  - {name: ask, uses: human.ask, with: {question: '` + evil + `', choices: ['` + evil + `', 'javascript:alert(5)']}, output: {a: "{{ result.answer }}"}}
  - {name: fail, run: 'error("` + evil + `")'}
`})
	p.write("bad<img src=x onerror=alert(6)>.yaml", `nodes: [{name: n, uses: '`+evil+`'}]`)
	s := p.serve()
	b := c.open(t, s.url)
	b.has("onerror=alert(6)")
	b.click("td a", `e">`)
	b.click("button", "Start")
	b.status("waiting")
	b.await("document.querySelector('.questions h3').textContent.includes('<script>')")
	b.click(".row", "n <script>")
	b.await("document.querySelector('section[aria-label=State] ins').textContent.includes('<img')")
	b.click(".questions button", "<img")
	b.status("failed")
	b.await("document.querySelector('.errors').textContent.includes('<img')")
	b.await("document.querySelector('.graph').textContent.includes('<script>')")
	b.click(".row", "+")
	if n := b.eval("document.querySelectorAll('main img, main script, main iframe, main [onerror]').length"); n != "0" {
		t.Errorf("the page has %s elements of the run:\n%s", n, b.eval("document.querySelector('main').innerHTML"))
	}
	for _, hash := range []string{"#/runs/%3Cimg%20src=x%20onerror=alert(7)%3E", "#/workflows/%ff", "#/%3Cscript%3E"} {
		b.eval("location.hash = " + quote(hash))
		b.await("decodeURI(location.hash.replace('%ff', '')) && !document.querySelector('main img, main script')")
	}
}

// relay passes connections on to a server.
type relay struct {
	listener net.Listener
	target   string
	mu       sync.Mutex
	cut      bool
	open     []net.Conn
}

func newRelay(t *testing.T, url string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l, target: strings.TrimPrefix(url, "http://")}
	t.Cleanup(func() {
		_ = l.Close()
		r.set(true)
	})
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go r.serve(client)
		}
	}()
	return r
}

func (r *relay) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", r.target)
	if err != nil {
		return
	}
	defer server.Close()
	r.mu.Lock()
	if r.cut {
		r.mu.Unlock()
		return
	}
	r.open = append(r.open, client, server)
	r.mu.Unlock()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
}

// set cuts all connections, or lets new ones through.
func (r *relay) set(cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = cut
	if cut {
		for _, c := range r.open {
			_ = c.Close()
		}
		r.open = nil
	}
}

func pageConnection(t *testing.T, c *chromium) {
	p := newProject(t, nil)
	gate := filepath.Join(p.home, "gate")
	p.write("block.yaml", block(gate))
	s := p.serve()
	id := s.started()
	r := newRelay(t, s.url)
	b := c.open(t, "http://"+r.listener.Addr().String()+"/#/runs/"+id)
	b.await("document.querySelector('.graph g.running')")
	r.set(true)
	b.has("The connection to the server is lost")
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.events(id, "", func(event) bool { return true })
	r.set(false)
	b.status("done")
	b.await("document.querySelector('.warn').hidden")
	if n := b.eval("document.querySelectorAll('.row[data-event=run_start]').length"); n != "1" {
		t.Errorf("the page shows %s starts of the run", n)
	}
}

// pageHidden shows a run in a tab in the background, which has no connection, and keeps
// the focus while the page is drawn again.
func pageHidden(t *testing.T, c *chromium) {
	p := newProject(t, nil)
	gate := filepath.Join(p.home, "gate")
	p.write("block.yaml", block(gate))
	s := p.serve()
	id := s.started()
	b := c.open(t, s.url+"/#/runs/"+id)
	b.await("document.querySelector('.graph g.running')")
	show := func(hidden string) {
		t.Helper()
		b.eval(`{Object.defineProperty(document, "hidden", {configurable: true, value: ` + hidden + `}); document.dispatchEvent(new Event("visibilitychange"))}`)
	}
	show("true")
	open(t, gate)
	s.status(id)
	b.eval("(await fetch('/v1/runs/" + id + "/events')).text()") // the stream of the page would have ended before
	if b.eval("document.querySelectorAll('.graph g.running').length") == "0" {
		t.Error("a hidden page reads events")
	}
	show("false")
	b.status("done")
	b.await("!document.querySelector('.graph g.running')")
	b.eval("location.hash = '#/runs'")
	b.await("document.querySelector('td a')")
	b.eval("{const a = document.querySelector('td a'); a.focus(); a.dataset.old = 'yes'}")
	b.await("!document.activeElement.dataset.old") // the list was drawn again
	if got := b.eval("document.activeElement.textContent"); got != quote(id) {
		t.Errorf("the focus is on %s", got)
	}
}

func pageMarks(t *testing.T, c *chromium) {
	s := newProject(t, map[string]string{"marks.yaml": "nodes: [{name: a>b, run: 'return {n = 1}'}, {name: last, run: 'return {m = 1}'}]\n"}).serve()
	id := s.run("marks", "{}")["id"].(string)
	b := c.open(t, s.url+"/#/runs/"+id)
	b.await("[...document.querySelectorAll('.graph g.done > .name')].map(e => e.textContent).join() === 'a>b,last'")
}

func pageToken(t *testing.T, c *chromium) {
	p := newProject(t, map[string]string{"greet.yaml": greet})
	const token = "0123456789abcdef-of-a-viewer"
	file := filepath.Join(p.home, "tokens")
	if err := os.WriteFile(file, []byte("view "+token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := p.serve("--token-file", file)
	b := c.open(t, s.url)
	b.has("The server needs a token")
	b.fill("Token", "wrong-token-of-somebody")
	b.click("dialog button", "Use")
	b.has("The server does not accept the token")
	b.fill("Token", token)
	b.click("dialog button", "Use")
	b.click("td a", "greet")
	b.await("document.querySelector('.graph svg') && !document.querySelector('form')")
	for path, hidden := range map[string]string{"plugins": "Install or replace", "runs": "Delete", "schedule": "Run now"} {
		b.click("nav a", strings.ToUpper(path[:1])+path[1:])
		b.await("document.querySelector('h1').textContent.toLowerCase() === " + quote(path))
		if b.eval("[...document.querySelectorAll('main button')].some(e => e.textContent.startsWith("+quote(hidden)+"))") != "false" {
			t.Errorf("%s: the role view has %s", path, hidden)
		}
	}
	if got := b.eval("[sessionStorage.getItem('tea-token'), localStorage.length, document.cookie, location.href.includes('" + token + "'), performance.getEntriesByType('resource').some(e => e.name.includes('" + token + "'))]"); got != `["`+token+`",0,"",false,false]` {
		t.Errorf("the token is at %s", got)
	}
}

func pageMap(t *testing.T, c *chromium) {
	s := newProject(t, map[string]string{"each.yaml": `
nodes:
  - {name: list, run: 'local t = {} for i = 1, 10000 do t[i] = i end return {items = t}'}
  - {name: work, type: dynamic_parallel, items: "{{ state.items }}", item_var: item, fan_in: join, steps: [{name: double, run: 'if item == 9000 then error("odd") end return {y = item * 2}'}]}
  - {name: join, run: 'return {n = #parallel_results}'}
`}).serve()
	r := s.request("POST", "/v1/workflows/each/runs", "")
	b := c.open(t, s.url+"/#/runs/"+r.body["id"].(string))
	s.events(r.body["id"].(string), "", func(event) bool { return true }) // it takes long on a busy machine
	b.status("done")
	b.has("work 10000 of 10000, 1 failed")
	b.fillSearch("Search nodes", "work[9998]")
	b.await("document.querySelectorAll('section[aria-label=Timeline] .row').length === 2")
	b.fillSearch("Search events and logs", "odd")
	b.await("document.querySelector('section[aria-label=\"Events and logs\"] .row').innerText.includes('work[8999]')")
	if n := b.eval("document.querySelectorAll('*').length < 1000"); n != "true" {
		t.Errorf("the page has %s elements", b.eval("document.querySelectorAll('*').length"))
	}
}

// fillSearch sets a field for searches.
func (b *tab) fillSearch(label, text string) {
	b.t.Helper()
	b.eval(`{const field = document.querySelector('[aria-label="` + label + `"]')
		field.value = ` + quote(text) + `
		field.dispatchEvent(new Event("input", {bubbles: true}))}`)
}

// contrasts are the pairs of colours of the page whose contrast is below 4.5.
const contrasts = `{
	const style = getComputedStyle(document.documentElement)
	const light = name => {
		const hex = style.getPropertyValue("--" + name).trim().slice(1)
		const full = hex.length === 3 ? [...hex].map(c => c + c).join("") : hex
		const [r, g, b] = [0, 2, 4].map(i => parseInt(full.slice(i, i + 2), 16) / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
		return 0.2126 * r + 0.7152 * g + 0.0722 * b
	}
	const low = []
	for (const [inks, pages] of [[["ink", "muted", "link", "done", "failed", "waiting", "running"], ["page", "panel"]], [["ink", "muted", "failed"], ["error", "ask"]], [["ink"], ["del", "ins"]]]) {
		for (const ink of inks) for (const page of pages) {
			const [a, b] = [light(ink), light(page)].sort((a, b) => b - a)
			if ((a + 0.05) / (b + 0.05) < 4.5) low.push(ink + " on " + page)
		}
	}
	return low
}`

func pagePhone(t *testing.T, c *chromium) {
	s := newProject(t, map[string]string{"order.yaml": order}).serve()
	id := s.run("order", `{"count": 2}`)["id"].(string)
	b := c.open(t, s.url+"/#/runs/"+id)
	b.status("waiting")
	b.eval("document.body.focus()")
	b.keys("/")
	b.await("document.activeElement.type === 'search'")
	b.eval("document.activeElement.select()") // the driver types the key in any case
	b.keys("price")
	b.await("document.querySelectorAll('section[aria-label=Timeline] .row').length === 1")
	b.eval("document.querySelector('.questions button').focus()")
	b.keys("\r")
	b.status("done")
	for _, scheme := range []string{"light", "dark"} {
		media := func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
			_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
			return chromedp.Void{}, err
		}
		if err := chromedp.Do(b.ctx, media, chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile)); err != nil {
			t.Fatal(err)
		}
		if low := b.eval(contrasts); low != "[]" {
			t.Errorf("%s: low contrast: %s", scheme, low)
		}
		for _, view := range []string{"#/", "#/runs", "#/workflows/order", "#/runs/" + id} {
			b.eval("location.hash = " + quote(view))
			b.await("document.querySelector('main h1') && document.querySelector('main').innerText.includes('order')")
			if view != "#/" && view != "#/runs" {
				b.await("document.querySelector('.graph')")
			}
			if strings.HasSuffix(view, id) {
				b.await("document.querySelector('section[aria-label=Timeline] .row')")
			}
			if wide := b.eval("document.documentElement.scrollWidth"); wide != "360" {
				t.Errorf("%s, %s: the page is %s wide", scheme, view, wide)
			}
			if dir := os.Getenv("TEA_SCREENSHOTS"); dir != "" {
				b.shot(filepath.Join(dir, scheme+strings.ReplaceAll(strings.Split(view, id)[0], "/", "-")+".png"))
			}
		}
	}
}

// shot stores a picture of the page.
func (b *tab) shot(file string) {
	b.t.Helper()
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(file, picture, 0o600)
	}
	if err != nil {
		b.t.Error(err)
	}
}

// BenchmarkFirstPaint opens the page and, to compare, a text of a line. It reports the
// shortest times, since other processes can only add to them.
func BenchmarkFirstPaint(b *testing.B) {
	s := newProject(b, map[string]string{"greet.yaml": greet}).serve()
	page := startChromium(b).open(b, s.url)
	paint := func(path string) float64 {
		if err := chromedp.Do(page.ctx, chromedp.Navigate("about:blank"), chromedp.Navigate(s.url+path)); err != nil {
			b.Fatal(err)
		}
		page.await("performance.getEntriesByName('first-contentful-paint').length > 0")
		ms, err := chromedp.Run(page.ctx, chromedp.Evaluate[float64]("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
		if err != nil {
			b.Fatal(err)
		}
		return ms
	}
	shown, text := math.Inf(1), math.Inf(1)
	for b.Loop() {
		text = min(text, paint("/healthz"))
		shown = min(shown, paint("/"))
	}
	b.ReportMetric(text, "ms-text")
	b.ReportMetric(shown, "ms-page")
	b.ReportMetric(shown/text, "x-text")
}

package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/the-edge-agent/tea/test/teaproc"
)

// kept is true when the page has kept the answer to a request, and the worker the page.
func kept(path string) string {
	return "await caches.match(" + quote(path) + ") && await caches.match('/') && (await navigator.serviceWorker.ready).active.state === 'activated'"
}

// reloads waits until an action has loaded the page again.
func (b *tab) reloads(act func()) {
	b.t.Helper()
	b.eval("{window.before = true}")
	act()
	teaproc.Poll(b.t, func() (bool, any) {
		loaded, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!window.before && document.readyState === 'complete'"))
		return loaded, err // of a page that is being replaced
	})
}

// reload loads the page again.
func (b *tab) reload() {
	b.t.Helper()
	b.reloads(func() { b.eval("{setTimeout(() => location.reload())}") })
}

// pageOffline opens the page while the server is away: it shows the last data, and the
// current ones when the server is back.
func pageOffline(t *testing.T, c *chromium) {
	p := newProject(t, map[string]string{"ask.yaml": ask})
	s := p.serve()
	id := s.run("ask", "{}")["id"].(string)
	r := newRelay(t, s.url)
	b := c.open(t, "http://"+r.listener.Addr().String()+"/#/runs/"+id)
	b.await("document.querySelector('.graph g.waiting')")
	for _, part := range []string{"", "/graph.svg", "/events"} {
		b.await(kept("/v1/runs/" + id + part))
	}
	b.click("nav a", "Runs")
	b.await("document.querySelector('main tbody').innerText.includes('Go on?')")
	b.await(kept("/v1/runs?limit=100"))
	b.eval("location.hash = '#/'")
	b.await("document.querySelector('main tbody')")
	r.set(true)
	b.reload()
	b.has("The server cannot be reached. The page shows its data of ")
	b.has("Recent runs")
	b.accessible("offline")
	b.click("nav a", "Runs")
	b.await("document.querySelector('main tbody').innerText.includes('Go on?')")
	b.click("td a", id)
	b.status("waiting")
	b.await("document.querySelector('.graph g.waiting .name').textContent === 'q'")
	b.accessible("offline run")
	b.click(".questions button", "yes")
	b.await("[...document.querySelectorAll('.run > [role=alert]')].some(e => e.innerText === 'The server cannot be reached.')")
	s.request("POST", "/v1/runs/"+id+"/resume?wait=60", `{"answers": {"q": "yes"}}`)
	r.set(false)
	b.status("done")
	b.await("document.getElementById('away').hidden")
}

// pageLogout keeps data of a server that needs a token only for a user who stays logged
// in, and removes them at the end.
func pageLogout(t *testing.T, c *chromium) {
	p := newProject(t, map[string]string{"greet.yaml": greet})
	const token = "0123456789abcdef-of-a-viewer"
	file := filepath.Join(p.home, "tokens")
	if err := os.WriteFile(file, []byte("view "+token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := p.serve("--token-file", file)
	r := newRelay(t, s.url)
	b := c.open(t, "http://"+r.listener.Addr().String()+"/")
	const remains = "[localStorage.length, sessionStorage.length, (await caches.keys()).join()]"
	login := func() {
		t.Helper()
		b.has("The server needs a token")
		b.fill("Token", token)
	}
	login()
	b.click("dialog button", "Use")
	b.await("document.querySelector('td a').textContent === 'greet'")
	b.click("nav a", "Runs")
	b.has("No runs yet.")
	b.await("await caches.match('/')")
	if got := b.eval(remains); got != `[0,2,"tea-page"]` {
		t.Errorf("a user who does not stay: %s", got)
	}
	b.eval("location.hash = '#/'")
	b.reloads(func() { b.click("#logout", "Log out") })
	login()
	b.eval("document.getElementById('stay').click()")
	b.accessible("token")
	b.click("dialog button", "Use")
	b.await(kept("/v1/workflows"))
	r.set(true)
	b.reload()
	b.await("document.querySelector('td a').textContent === 'greet' && !document.getElementById('away').hidden")
	r.set(false)
	b.await("document.getElementById('away').hidden")
	b.reloads(func() { b.click("#logout", "Log out") })
	b.has("The server needs a token")
	if got := b.eval(remains); got != `[0,0,"tea-page"]` {
		t.Errorf("after the end: %s", got)
	}
	r.set(true)
	b.reload()
	b.await("document.querySelector('.notice').innerText === 'The server cannot be reached.'")
	if got := b.eval("document.body.innerText.includes('greet')"); got != "false" {
		t.Errorf("data after the end: %s", b.text())
	}
}

// pageInstalls asks the browser whether the page can be installed.
func pageInstalls(t *testing.T, c *chromium) {
	s := newProject(t, map[string]string{"greet.yaml": greet}).serve()
	b := c.open(t, s.url)
	b.await("(await navigator.serviceWorker.ready).active.state === 'activated'")
	app, err := chromedp.Call(b.ctx, page.GetAppManifest, page.GetAppManifestParams{})
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Icons []struct{ Src, Type string } `json:"icons"`
	}
	if err := json.Unmarshal([]byte(app.Data), &manifest); err != nil || len(app.Errors) > 0 || len(manifest.Icons) != 3 {
		t.Errorf("manifest %s: %v, %v", app.Data, err, app.Errors)
	}
	problems, err := chromedp.Call(b.ctx, page.GetInstallabilityErrors, cdp.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems.InstallabilityErrors {
		if problem.ErrorID != "in-incognito" { // as every page of a test
			t.Errorf("cannot be installed: %+v", problem)
		}
	}
	folder := filepath.Dir(app.URL[len(s.url):])
	for _, icon := range manifest.Icons {
		if r := s.request("GET", folder+"/"+icon.Src, ""); r.status != http.StatusOK || r.header.Get("Content-Type") != icon.Type {
			t.Errorf("%s: %d %s", icon.Src, r.status, r.header.Get("Content-Type"))
		}
	}
}

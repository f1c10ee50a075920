package chromium

import (
	"bytes"
	"context"
	"image/png"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
	"github.com/the-edge-agent/tea/sdk/x/safenet"
)

// testBrowser returns a browser on the real Chromium, closed at the end of the
// test. Without one the test is skipped; in CI that is a failure.
func testBrowser(t *testing.T, s Settings, guard *safenet.Guard) *Browser {
	t.Helper()
	peertest.Long(t, "needs a real browser")
	if _, err := (Settings{}).find(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("run scripts/chromium install: ", err)
	}
	b := New(s, guard, "", 0)
	t.Cleanup(func() { b.Close() })
	return b
}

// site serves pages by path; a page that begins with / is a redirect.
func site(t *testing.T, pages map[string]string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := pages[r.URL.Path]
		switch {
		case !ok:
			http.NotFound(w, r)
		case strings.HasPrefix(text, "http://"):
			http.Redirect(w, r, text, http.StatusFound)
		default:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			io.WriteString(w, text)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// public makes a server reachable under the name public.test, as if it had a
// public address.
func public(b *Browser, server *httptest.Server) {
	b.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == "public.test:80" {
			return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
		}
		return b.guard.Dial(ctx, network, address)
	}
}

func load(t *testing.T, b *Browser, r request) (*loaded, *tea.Error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if r.maxHTML == 0 {
		r.maxHTML = 1 << 20
	}
	page, err := b.load(ctx, r)
	return page, tea.AsError(err)
}

func TestPageOfScripts(t *testing.T) {
	t.Parallel()
	server := site(t, map[string]string{
		"/": `<!DOCTYPE html><title>App</title><div id=app></div><script src=/app.js></script>`,
		"/app.js": `fetch("/data").then(r => r.text()).then(text => {
			alert("dialogs do not stop the page")
			const p = document.createElement("p"); p.textContent = text; document.getElementById("app").append(p) })`,
		"/data": "written by a script: Ärger, 日本",
	})
	b := testBrowser(t, Settings{}, &safenet.Guard{AllowPrivate: true})
	page, failure := load(t, b, request{url: server.URL + "/", screenshot: true})
	if failure != nil {
		t.Fatal(failure)
	}
	if !strings.Contains(string(page.html), "<p>written by a script: Ärger, 日本</p>") {
		t.Errorf("got %s", page.html)
	}
	if page.status != 200 || page.contentType != "text/html" || page.url != server.URL+"/" || page.refused != 0 {
		t.Errorf("got %d, %q, %q, %d refused", page.status, page.contentType, page.url, page.refused)
	}
	picture, err := png.DecodeConfig(bytes.NewReader(page.png))
	if err != nil || picture.Width != viewWidth || picture.Height != viewHeight {
		t.Errorf("the screenshot is %v, %v", picture, err)
	}
	if page, failure = load(t, b, request{url: server.URL + "/none"}); failure != nil || page.status != 404 {
		t.Errorf("got %v, %v", page, failure)
	}
}

func TestWaitFor(t *testing.T) {
	t.Parallel()
	server := site(t, map[string]string{
		"/": `<body><script>
			// The network is idle long before the text is there.
			setTimeout(() => { const p = document.createElement("p"); p.id = "late"; p.textContent = "late"; document.body.append(p) }, 1500)
		</script>`,
	})
	b := testBrowser(t, Settings{}, &safenet.Guard{AllowPrivate: true})
	for _, r := range []request{{selector: "#late"}, {wait: 10 * time.Second}} {
		r.url = server.URL + "/"
		page, failure := load(t, b, r)
		if failure != nil || !strings.Contains(string(page.html), `<p id="late">late</p>`) {
			t.Errorf("got %v, %v", page, failure)
		}
	}
	if _, failure := load(t, b, request{url: server.URL + "/", selector: "p[["}); failure == nil || failure.Type != tea.ValidationError {
		t.Errorf("got %v", failure)
	}
}

// A page that keeps the network busy is read after a while.
func TestPageThatLoadsForever(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			io.WriteString(w, `<!DOCTYPE html><body><p>text</p><img src=/stalls><script>fetch("/stalls")</script>`)
			return
		}
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(stop) })
	b := testBrowser(t, Settings{}, &safenet.Guard{AllowPrivate: true})
	page, failure := load(t, b, request{url: server.URL + "/"})
	if failure != nil || !strings.Contains(string(page.html), "<p>text</p>") {
		t.Errorf("got %v, %v", page, failure)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	server := site(t, map[string]string{
		"/long":   `<body><script>document.body.append("x".repeat(3000000))</script>`,
		"/heavy":  `<body><script>fetch("/bytes")</script>`,
		"/bytes":  strings.Repeat("x", 300_000),
		"/lies":   `<body><script>String.prototype.slice = () => "lies"; Object.defineProperty(document.documentElement, "outerHTML", {get: () => "lies"})</script><p>truth</p>`,
		"/fine":   `<p>fine</p>`,
		"/memory": `<body><script>const all = []; function more() { all.push(new Uint8Array(32 << 20).fill(1)); setTimeout(more, 1) } more()</script>`,
		"/loop":   `<body><p>loop</p><script>for (;;) {}</script>`,
	})
	b := testBrowser(t, Settings{MaxPageBytes: 200_000, MaxMemoryMB: 700}, &safenet.Guard{AllowPrivate: true})
	_, failure := load(t, b, request{url: server.URL + "/long"})
	if failure == nil || failure.Type != tea.ResourceExhausted || !strings.Contains(failure.Message, "max_body_bytes") {
		t.Errorf("a long page: got %v", failure)
	}
	_, failure = load(t, b, request{url: server.URL + "/heavy", wait: time.Minute})
	if failure == nil || failure.Type != tea.ResourceExhausted || !strings.Contains(failure.Message, "max_page_bytes") {
		t.Errorf("a heavy page: got %v", failure)
	}
	page, failure := load(t, b, request{url: server.URL + "/lies"})
	if failure != nil || !strings.Contains(string(page.html), "<p>truth</p>") {
		t.Errorf("a page that changes the prototypes: got %v, %v", page, failure)
	}
	_, failure = load(t, b, request{url: server.URL + "/memory", wait: 2 * time.Minute})
	if failure == nil || failure.Type != tea.ResourceExhausted || !strings.Contains(failure.Message, "memory") {
		t.Errorf("a page that needs memory: got %v", failure)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := b.load(ctx, request{url: server.URL + "/loop", maxHTML: 1000}); tea.AsError(err) == nil || tea.AsError(err).Type != tea.Timeout {
		t.Errorf("a page that never ends: got %v", err)
	}
	if page, failure = load(t, b, request{url: server.URL + "/fine"}); failure != nil || !strings.Contains(string(page.html), "<p>fine</p>") {
		t.Errorf("the page after them: got %v, %v", page, failure)
	}
}

// What scripts and the page itself have put into open shadow roots is read.
func TestOpenShadowRoots(t *testing.T) {
	t.Parallel()
	server := site(t, map[string]string{"/": `<html lang="en"><title>t</title><x-a>light</x-a><div><template shadowrootmode="open"><p>declared</p></template></div><script>
		const outer = document.querySelector("x-a").attachShadow({mode: "open"})
		outer.innerHTML = "<p>outer</p><slot></slot><x-b></x-b>"
		outer.querySelector("x-b").attachShadow({mode: "open"}).innerHTML = "<p>inner</p>"
	</script>`})
	page, err := load(t, testBrowser(t, Settings{}, &safenet.Guard{AllowPrivate: true}), request{url: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`<html lang="en">`, `<x-a><template shadowrootmode="open"><p>outer</p><slot></slot><x-b><template shadowrootmode="open"><p>inner</p></template></x-b></template>light</x-a>`, "<p>declared</p>", "</html>"} {
		if !strings.Contains(string(page.html), want) {
			t.Errorf("the document has no %s:\n%s", want, page.html)
		}
	}
}

//go:build !js

package main_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// packageDir has the npm package, built once.
var packageDir = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tea-npm-")
	if err != nil {
		return "", err
	}
	out, err := exec.Command("../../scripts/npm", "build", dir).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("scripts/npm build: %w\n%s", err, out)
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	peertest.LongPackage("it builds for browsers")
	code := m.Run()
	if dir, err := packageDir(); err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// site serves the package under /tea/ and an empty page at /.
type site struct {
	*httptest.Server
	mux *http.ServeMux
}

func newSite(t testing.TB) *site {
	t.Helper()
	dir, err := packageDir()
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/tea/", http.StripPrefix("/tea/", http.FileServer(http.Dir(dir))))
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, `<!doctype html><title>tea</title><link rel="icon" href="data:,"><script type="module">
			import * as tea from '/tea/index.js';
			Object.assign(globalThis, tea, { loaded: true });
		</script>`)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &site{server, mux}
}

// browser is a running Chromium with a profile.
type browser struct {
	ctx     context.Context
	profile string
	stop    func()
}

func startBrowser(t testing.TB, profile string, flags ...chromedp.ExecAllocatorOption) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("chromium is missing; run scripts/chromium install")
		}
		t.Skip("chromium is missing; run scripts/chromium install")
	}
	options := append([]chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Headless, chromedp.NoSandbox,
		chromedp.UserDataDir(profile), chromedp.WSURLReadTimeout(2 * time.Minute),
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("disable-hang-monitor", true),
		chromedp.Flag("disable-background-timer-throttling", true), chromedp.Flag("disable-renderer-backgrounding", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	}, flags...)
	allocator, wait := chromedp.NewExecAllocator(context.Background(), options...)
	silent := func(string, ...any) {}
	ctx, _ := chromedp.NewContext(allocator, chromedp.WithLogf(silent), chromedp.WithErrorf(silent))
	b := &browser{ctx: ctx, profile: profile, stop: sync.OnceFunc(wait)}
	t.Cleanup(b.stop)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	return b
}

// page is a tab that has loaded the package.
type page struct {
	t   testing.TB
	ctx context.Context
}

func (b *browser) open(t testing.TB, url string) *page {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(b.ctx)
	t.Cleanup(closeTab)
	p := &page{t, ctx}
	p.load(url)
	return p
}

func (p *page) load(url string) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, chromedp.Navigate(url)); err != nil {
		p.t.Fatalf("load %s: %v", url, err)
	}
	p.evaluate(`new Promise((done) => { const wait = () => globalThis.loaded ? done('') : setTimeout(wait, 5); wait(); })`)
}

// script runs the body of an async function and returns the JSON text of its
// result, or of what it has thrown.
func (p *page) script(body string) string {
	p.t.Helper()
	return p.evaluate("(async () => {" + body + `})().then(stringify, (e) => stringify({thrown: e.type
		? {type: e.type, message: e.message, path: e.path, status: e.result?.status, codes: e.diagnostics?.map((d) => d.code)}
		: String(e?.stack ?? e)}))`)
}

// evaluate waits for a promise of a string, for as long as a slow machine needs.
func (p *page) evaluate(expression string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 5*time.Minute)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return text
}

func newPage(t testing.TB) *page {
	t.Helper()
	s := newSite(t)
	return startBrowser(t, filepath.Join(t.TempDir(), "profile")).open(t, s.URL)
}

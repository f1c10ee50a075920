//go:build !js && !lite

// The program in the page is the same with the tag lite.

package browser_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// pageTimeout bounds a program in a page.
const pageTimeout = 10 * time.Minute

// site serves the test binary of this package for js/wasm.
type site struct {
	*httptest.Server
	mu       sync.Mutex
	next     int
	programs map[string]*program
}

// program is the test binary in a worker.
type program struct {
	done    chan outcome
	reports chan string
}

type outcome struct {
	Code   int    `json:"code"`
	Output string `json:"output"`
}

// built is what a page needs to run the tests of this package.
type built struct {
	dir  string // has browser.wasm
	exec string // wasm_exec.js of the Go installation
}

// build builds the test binary, once.
var build = sync.OnceValues(func() (b built, err error) { //nolint:gochecknoglobals // built once
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return b, fmt.Errorf("find the Go installation: %w", err)
	}
	b.exec = filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js")
	if b.dir, err = os.MkdirTemp("", "tea-browser-"); err != nil {
		return b, err
	}
	// With the flags of scripts/npm, whose packages are in the cache.
	compile := exec.Command("go", "test", "-c", "-trimpath", "-o", filepath.Join(b.dir, "browser.wasm"), ".")
	compile.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := compile.CombinedOutput(); err != nil {
		return b, fmt.Errorf("build the tests for js/wasm: %w\n%s", err, out)
	}
	return b, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if !testing.Short() {
		b, _ := build() // its error was a test's
		_ = os.RemoveAll(b.dir)
	}
	os.Exit(code)
}

// newSite starts a server for the page of a test.
func newSite(t *testing.T) *site {
	t.Helper()
	needsChromium(t)
	b, err := build()
	if err != nil {
		t.Fatal(err)
	}
	s := &site{programs: map[string]*program{}}
	mux := http.NewServeMux()
	serve := func(pattern, kind string, content func() ([]byte, error)) {
		mux.HandleFunc("GET "+pattern, func(w http.ResponseWriter, _ *http.Request) {
			body, err := content()
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(body) // the page reports what is missing
		})
	}
	read := func(path string) func() ([]byte, error) { return func() ([]byte, error) { return os.ReadFile(path) } }
	serve("/{$}", "text/html", func() ([]byte, error) { return []byte("<!DOCTYPE html><title>tests</title>"), nil })
	serve("/worker.js", "text/javascript", read("testdata/worker.js"))
	serve("/memory.js", "text/javascript", read("../../../packages/browser/memory.js"))
	serve("/wasm_exec.js", "text/javascript", read(b.exec))
	serve("/browser.wasm", "application/wasm", read(filepath.Join(b.dir, "browser.wasm")))
	mux.HandleFunc("POST /report", s.report)
	mux.HandleFunc("POST /done", s.done)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// report takes a line of a program.
func (s *site) report(_ http.ResponseWriter, r *http.Request) {
	line, err := io.ReadAll(r.Body)
	if p := s.program(r); err == nil && p != nil {
		p.reports <- string(line)
	}
}

func (s *site) done(_ http.ResponseWriter, r *http.Request) {
	var o outcome
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		o = outcome{2, err.Error()}
	}
	if p := s.program(r); p != nil {
		p.done <- o
	}
}

func (s *site) program(r *http.Request) *program {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.programs[r.URL.Query().Get("id")]
}

// needsChromium skips a test where no Chromium is installed; in CI that is a
// failure.
func needsChromium(t *testing.T) {
	t.Helper()
	peertest.Long(t, "needs a real browser")
	if _, err := exec.LookPath("chromium"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("run scripts/chromium install: ", err)
	}
}

// startBrowser starts Chromium with a profile and opens a page of the site.
func startBrowser(t *testing.T, s *site, profile string) context.Context {
	t.Helper()
	options := []chromedp.ExecAllocatorOption{
		chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Headless, chromedp.NoSandbox, chromedp.UserDataDir(profile),
		chromedp.WSURLReadTimeout(pageTimeout),
	}
	for _, name := range []string{"disable-gpu", "disable-dev-shm-usage", "disable-background-networking", "disable-component-update", "disable-extensions", "disable-sync", "disable-breakpad", "disable-crash-reporter"} {
		options = append(options, chromedp.Flag(name, true))
	}
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(end)
	ctx, cancel := chromedp.NewContext(allocator, chromedp.WithLogf(func(string, ...any) {}), chromedp.WithErrorf(func(string, ...any) {}))
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx, chromedp.Navigate(s.URL+"/")); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// start runs the tests whose names match, in a worker of the page. env are their
// environment variables.
func (s *site) start(page context.Context, t *testing.T, env map[string]string, args ...string) *program {
	t.Helper()
	s.mu.Lock()
	s.next++
	id := fmt.Sprint(s.next)
	p := &program{done: make(chan outcome, 2), reports: make(chan string, 10_000)}
	s.programs[id] = p
	s.mu.Unlock()
	toJSON := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	query := url.Values{"id": {id}, "args": {toJSON(append([]string{"-test.v", "-test.timeout=9m"}, args...))}, "env": {toJSON(env)}}
	script := fmt.Sprintf(`{
		const worker = new Worker(%s);
		worker.onerror = (e) => fetch("/done?id=%s", { method: "POST", body: JSON.stringify({ code: 2, output: String(e.message) }) });
		(globalThis.workers ||= {})[%s] = worker;
	}`, toJSON("/worker.js?"+query.Encode()), id, id)
	if err := chromedp.Do(page, chromedp.Evaluate[chromedp.Void](script)); err != nil {
		t.Fatal(err)
	}
	return p
}

// wait returns the outcome of a program.
func (p *program) wait(t *testing.T) outcome {
	t.Helper()
	select {
	case o := <-p.done:
		return o
	case <-time.After(pageTimeout):
		t.Fatal("the program in the page does not end")
		return outcome{}
	}
}

// passed reports the tests of a program like go test.
func passed(t *testing.T, o outcome) {
	t.Helper()
	if o.Code == 0 {
		return
	}
	var failed bytes.Buffer
	for line := range strings.Lines(o.Output) {
		if !strings.HasPrefix(line, "=== ") && !strings.Contains(line, "--- PASS") {
			failed.WriteString(line)
		}
	}
	t.Errorf("in the browser, exit code %d:\n%s", o.Code, failed.String())
}

func TestConformance(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	page := startBrowser(t, s, t.TempDir())
	for _, suite := range []string{"LongTermMemory", "MetadataStore", "VectorIndex", "BlobStorage", "Replica"} {
		t.Run(suite, func(t *testing.T) {
			t.Parallel() // each has its databases, and mostly waits for the disk
			o := s.start(page, t, nil, "-test.run=^Test"+suite+"$").wait(t)
			passed(t, o)
			if !strings.Contains(o.Output, "--- PASS: Test"+suite+"/") && o.Code == 0 {
				t.Errorf("no test has run:\n%s", o.Output)
			}
		})
	}
}

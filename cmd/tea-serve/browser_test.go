package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// awaitTimeout is how long the page has to show something on a busy machine.
const awaitTimeout = 2 * time.Minute

// chromium is a browser.
type chromium struct{ ctx context.Context }

// startChromium starts a browser until the test ends. Where none is installed the
// test is skipped; in CI that is a failure.
func startChromium(t testing.TB) *chromium {
	t.Helper()
	peertest.Long(t, "needs a real browser")
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("run scripts/chromium install: ", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.Flag("disable-gpu", true), chromedp.UserDataDir(t.TempDir()))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...) // t.Context ends before parallel tests do
	ctx, closeBrowser := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		closeBrowser()
		stop()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return &chromium{ctx}
}

// tab is a page in a browser.
type tab struct {
	t   testing.TB
	ctx context.Context

	mu sync.Mutex
	// complaints are exceptions, dialogs and violations of the policy of the page.
	complaints []string
}

// open opens a page in a separate tab, which must not have complaints at the end of
// the test.
func (c *chromium) open(t testing.TB, url string) *tab {
	t.Helper()
	b := &tab{t: t}
	var closeTab context.CancelFunc
	b.ctx, closeTab = chromedp.NewContext(c.ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(b.listen))
	t.Cleanup(func() {
		closeTab()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, text := range b.complaints {
			t.Error("the page complains: " + text)
		}
	})
	if err := chromedp.Do(b.ctx, chromedp.EmulateViewport(1280, 1000), chromedp.Navigate(url)); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *tab) listen(event any) {
	text := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text = fmt.Sprint(e.ExceptionDetails)
	case *page.EventJavascriptDialogOpening:
		text = "dialog: " + e.Message
	case *log.EventEntryAdded:
		if e.Entry.Source != log.EntrySourceNetwork { // a status of 401, or no connection
			text = e.Entry.Text
		}
	}
	if text != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.complaints = append(b.complaints, text)
	}
}

// eval returns the value of an expression as JSON.
func (b *tab) eval(expression string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, awaitTimeout)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[any]("(async () => "+expression+")()", chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", expression, err, b.text())
	}
	text, err := json.Marshal(v)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

// text returns the text of the page.
func (b *tab) text() string {
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
	if err != nil {
		return err.Error()
	}
	return text
}

// await waits until an expression is true.
func (b *tab) await(condition string) {
	b.t.Helper()
	b.eval("{for (;;) { try { if (" + condition + ") return true } catch {} await new Promise(done => setTimeout(done, 20)) }}")
}

// has waits for a text in the page.
func (b *tab) has(text string) {
	b.t.Helper()
	b.await("document.body.innerText.includes(" + quote(text) + ")")
}

// status waits for the status of the run.
func (b *tab) status(want string) {
	b.t.Helper()
	b.await("document.querySelector('h1 .badge').textContent === " + quote(want) + " && !document.querySelector('.reading')")
}

// click clicks on an element with a text, when it is there.
func (b *tab) click(selector, text string) {
	b.t.Helper()
	find := "[...document.querySelectorAll(" + quote(selector) + ")].find(e => !e.disabled && e.textContent.trim().startsWith(" + quote(text) + "))"
	b.await(find)
	b.eval(find + ".dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}))")
}

// fill sets a field by its label.
func (b *tab) fill(label, text string) {
	b.t.Helper()
	find := "document.getElementById([...document.querySelectorAll('label')].find(e => e.textContent.trim().startsWith(" + quote(label) + ")).htmlFor)"
	b.await(find)
	b.eval(`{const field = ` + find + `
		field.value = field.tagName === "SELECT" ? [...field.options].find(o => o.textContent === ` + quote(text) + `).value : ` + quote(text) + `
		field.dispatchEvent(new Event("input", {bubbles: true}))
		field.dispatchEvent(new Event("change", {bubbles: true}))}`)
}

// keys types keys.
func (b *tab) keys(text string) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, chromedp.KeyEvent(text)); err != nil {
		b.t.Fatal(err)
	}
}

// run returns the id of the run that is shown.
func (b *tab) run() string {
	b.t.Helper()
	b.await("location.hash.startsWith('#/runs/')")
	return strings.Trim(b.eval("decodeURIComponent(location.hash.slice(7))"), `"`)
}

// quote returns a text as a literal of JavaScript.
func quote(text string) string {
	literal, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string can be encoded
	}
	return string(literal)
}

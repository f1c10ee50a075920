package chromium

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/css"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/inspector"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	tea "github.com/the-edge-agent/tea/sdk"
)

// request is a page to load. It is complete when an element matches selector, or
// after wait, or, with neither, when the network is idle.
type request struct {
	url        string
	selector   string
	wait       time.Duration
	screenshot bool
	fullPage   bool // the screenshot is of the whole page
	maxHTML    int  // limit for the document in characters
}

// loaded is a page that was loaded.
type loaded struct {
	url         string // after redirects, including redirects by scripts
	status      int
	contentType string
	html        []byte // the document after its scripts have run; nil for a file
	png         []byte
	cutAt       int // height of a page that exceeds its screenshot; otherwise 0
	refused     int // hosts that the page tried to reach, at most maxFailures
}

// tab is a page that is being loaded.
type tab struct {
	process *process
	proxy   *proxy
	caller  context.Context
	ctx     context.Context // chromedp's
	target  *chromedp.Target
	frame   cdp.FrameID // the main one

	changed chan struct{} // receives a value after an event

	mu       sync.Mutex
	document *url.URL // last requested document
	status   int
	mime     string
	read     bool // the document was read
	idle     bool // nothing was requested for half a second after that
	crashed  bool
}

// load loads a page in a new browser context without cookies and cache, through
// the proxy.
func (p *process) load(ctx context.Context, proxy *proxy, r request) (*loaded, error) {
	address, err := url.Parse(r.url)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "%q is not a valid URL", r.url)
	}
	t := &tab{process: p, proxy: proxy, caller: ctx, document: address, changed: make(chan struct{}, 1)}
	var remove context.CancelFunc
	t.ctx, remove = chromedp.NewContext(p.ctx, chromedp.WithNewBrowserContext(func(c *target.CreateBrowserContextParams) {
		c.ProxyServer, c.ProxyBypassList = "http://"+proxy.address, "<-loopback>"
	}))
	defer remove()
	stop := context.AfterFunc(ctx, remove)
	defer stop()
	page, err := t.load(r)
	if err != nil {
		return nil, t.explain(err)
	}
	page.refused = proxy.refused()
	return page, nil
}

func (t *tab) load(r request) (*loaded, error) {
	if err := t.prepare(); err != nil {
		return nil, err
	}
	result, err := cdp.Call(t.ctx, t.target, page.Navigate, page.NavigateParams{URL: r.url})
	if err != nil {
		return nil, err
	}
	if result.IsDownload {
		return t.file(), nil
	}
	if result.ErrorText != "" {
		return nil, t.loadError(result.ErrorText)
	}
	if err := t.await(r); err != nil {
		return nil, err
	}
	if mime := t.file().contentType; mime != "text/html" && mime != "application/xhtml+xml" {
		return t.file(), nil // the document is the browser's viewer
	}
	p, err := t.readPage(r)
	if err != nil || !r.screenshot {
		return p, err
	}
	return p, t.capture(r, p)
}

// capture takes the screenshot of a page.
func (t *tab) capture(r request, p *loaded) error {
	params := page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng}
	if r.fullPage {
		metrics, err := cdp.Call(t.ctx, t.target, page.GetLayoutMetrics, cdp.Empty{})
		if err != nil {
			return err
		}
		height := metrics.CSSContentSize.Height
		if height > maxShotHeight {
			p.cutAt = int(height)
		}
		beyond := true
		params.CaptureBeyondViewport = &beyond
		params.Clip = &page.Viewport{Width: viewWidth, Height: min(max(height, viewHeight), maxShotHeight), Scale: 1}
	}
	shot, err := cdp.Call(t.ctx, t.target, page.CaptureScreenshot, params)
	if err != nil {
		return err
	}
	if len(shot.Data) > maxShot {
		return tea.Errorf(tea.ResourceExhausted, "the screenshot of %s is too large: %d bytes (limit %d)", p.url, len(shot.Data), maxShot)
	}
	p.png = shot.Data
	return nil
}

// prepare opens the tab.
func (t *tab) prepare() error {
	if err := chromedp.Do(t.ctx); err != nil {
		return err
	}
	c := chromedp.FromContext(t.ctx)
	t.target = c.Target
	t.frame = cdp.FrameID(c.Target.TargetID)
	// These report output and changes of the page that are not used.
	for _, method := range []string{runtime.Disable.Method, cdplog.Disable.Method, css.Disable.Method, dom.Disable.Method} {
		if err := t.target.Call(t.ctx, method, cdp.Empty{}, nil); err != nil {
			return err
		}
	}
	if err := chromedp.Listen(t.ctx, t.event); err != nil {
		return err
	}
	_, err := chromedp.CallBrowser(t.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorDeny, BrowserContextID: c.BrowserContextID,
	})
	if err != nil {
		return err
	}
	_, err = cdp.Call(t.ctx, t.target, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: viewWidth, Height: viewHeight, DeviceScaleFactor: 1,
	})
	return err
}

// event handles an event of the page. It must not block.
func (t *tab) event(ev any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch ev := ev.(type) {
	case *network.EventRequestWillBeSent:
		if ev.Type == network.ResourceTypeDocument && ev.FrameID == t.frame {
			if u, err := url.Parse(ev.Request.URL); err == nil {
				t.document = u
			}
			t.read, t.idle = false, false
		}
	case *network.EventResponseReceived:
		if ev.Type == network.ResourceTypeDocument && ev.FrameID == t.frame {
			t.status, t.mime = int(ev.Response.Status), ev.Response.MimeType
		}
	case *page.EventLifecycleEvent:
		if ev.FrameID != t.frame {
			return
		}
		switch ev.Name {
		case "DOMContentLoaded":
			t.read = true
		case "networkIdle":
			t.idle = true
		}
	case *page.EventJavascriptDialogOpening:
		// The page waits until its dialog is closed.
		go cdp.Call(t.ctx, t.target, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{}) //nolint:errcheck // the page may have gone
		return
	case *inspector.EventTargetCrashed:
		t.crashed = true
	default:
		return
	}
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// until waits for a condition of the tab. A nil limit never ends.
func (t *tab) until(met func() bool, limit <-chan time.Time) error {
	for {
		t.mu.Lock()
		done, crashed := met(), t.crashed
		t.mu.Unlock()
		switch {
		case crashed:
			return tea.Errorf(tea.ResourceExhausted, "the page crashed, usually because it needs too much memory")
		case done:
			return nil
		}
		select {
		case <-t.changed:
		case <-limit:
			return nil
		case <-t.proxy.ctx.Done():
			return t.proxy.failure("", "")
		case <-t.ctx.Done():
			return t.ctx.Err()
		}
	}
}

// await waits until the page is complete.
func (t *tab) await(r request) error {
	if err := t.until(func() bool { return t.read }, nil); err != nil {
		return err
	}
	switch {
	case r.selector != "":
		return t.awaitSelector(r.selector)
	case r.wait > 0:
		return t.until(func() bool { return false }, time.After(r.wait))
	}
	return t.until(func() bool { return t.read && t.idle }, time.After(settleTime))
}

// pollInterval is how often a selector is looked for.
const pollInterval = 100 * time.Millisecond

// findElement is the expression that searches for a selector.
const findElement = `(() => {
	try { return {url: location.href, found: document.querySelector(%s) !== null} } catch (e) { return {url: location.href, error: e.message} }
})()`

func (t *tab) awaitSelector(selector string) error {
	quoted, err := json.Marshal(selector)
	if err != nil {
		return err
	}
	for {
		var got struct {
			URL   string `json:"url"`
			Found bool   `json:"found"`
			Error string `json:"error"`
		}
		if err := t.evaluate(fmt.Sprintf(findElement, quoted), &got); err != nil {
			return err
		}
		switch {
		case got.Error != "":
			return tea.Errorf(tea.ValidationError, "wait_for: %q is not a valid CSS selector: %s", selector, got.Error)
		case got.Found:
			return nil
		case !isWeb(got.URL):
			return t.loadError("the page led to " + got.URL)
		}
		if err := t.until(func() bool { return false }, time.After(pollInterval)); err != nil {
			return err
		}
	}
}

// evaluate runs an expression in a JavaScript world that the page's scripts cannot
// change, and decodes its value. It retries if the page is replaced meanwhile.
func (t *tab) evaluate(expression string, into any) error {
	const tries = 20
	byValue := true
	for try := 1; ; try++ {
		world, err := cdp.Call(t.ctx, t.target, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: t.frame, WorldName: "tea"})
		if err == nil {
			var result runtime.EvaluateResult
			result, err = cdp.Call(t.ctx, t.target, runtime.Evaluate, runtime.EvaluateParams{Expression: expression, ContextID: world.ExecutionContextID, ReturnByValue: &byValue})
			switch {
			case err != nil:
			case result.ExceptionDetails != nil:
				err = fmt.Errorf("read the page: %s", result.ExceptionDetails.Text)
			default:
				return json.Unmarshal(result.Result.Value, into)
			}
		}
		if t.ctx.Err() != nil || try == tries {
			return err
		}
		if err := t.until(func() bool { return false }, time.After(pollInterval)); err != nil {
			return err
		}
	}
}

// readDocument is the expression that returns the document, with open shadow
// roots as declarative ones. It does not send a document that exceeds the limit.
const readDocument = `(() => {
	const type = document.doctype ? "<!DOCTYPE " + document.doctype.name + ">" : "";
	const root = document.documentElement;
	const shadowRoots = [];
	const collect = node => {
		for (const e of node.querySelectorAll("*")) {
			if (e.shadowRoot) {
				shadowRoots.push(e.shadowRoot);
				collect(e.shadowRoot);
			}
		}
	};
	let html = root ? root.outerHTML : "";
	if (root) collect(root);
	if (shadowRoots.length > 0 && root.getHTML) {
		const shell = root.cloneNode(false).outerHTML, end = shell.lastIndexOf("</");
		html = shell.slice(0, end) + root.getHTML({shadowRoots}) + shell.slice(end);
	}
	html = type + html;
	return {url: location.href, length: html.length, html: html.length > %d ? "" : html};
})()`

// readPage reads the document.
func (t *tab) readPage(r request) (*loaded, error) {
	var got struct {
		URL    string `json:"url"`
		Length int    `json:"length"`
		HTML   string `json:"html"`
	}
	if err := t.evaluate(fmt.Sprintf(readDocument, r.maxHTML), &got); err != nil {
		return nil, err
	}
	if !isWeb(got.URL) {
		return nil, t.loadError("the page led to " + got.URL)
	}
	if got.Length > r.maxHTML {
		return nil, tea.Errorf(tea.ResourceExhausted, "the rendered page is too long: %d characters (limit %d, settings.web.max_body_bytes)", got.Length, r.maxHTML)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return &loaded{url: got.URL, status: t.status, contentType: t.mime, html: []byte(got.HTML)}, nil
}

// file returns a page that is a file, without a document.
func (t *tab) file() *loaded {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &loaded{url: t.document.String(), status: t.status, contentType: t.mime}
}

// isWeb reports whether an address is a web address, not an internal page of the browser such as an error page.
func isWeb(address string) bool {
	return strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://")
}

// loadError is the error of a page that was not loaded: the proxy's error for its
// host, otherwise the browser's.
func (t *tab) loadError(text string) error {
	t.mu.Lock()
	document := t.document
	t.mu.Unlock()
	port := "80"
	if document.Scheme == "https" {
		port = "443"
	}
	if failure := t.proxy.failure(document.Host, port); failure != nil {
		return failure
	}
	e := tea.Errorf(tea.ConnectionError, "Chromium did not load %s: %s", document.Redacted(), text)
	e.Source = document.Host
	e.Retryable = !strings.Contains(text, "ERR_CERT_") && !strings.Contains(text, "ERR_TOO_MANY_REDIRECTS") && !strings.Contains(text, "ERR_ABORTED")
	return e
}

// explain returns the cause of an error: the caller's context, a limit, or the
// end of the browser.
func (t *tab) explain(err error) error {
	if t.caller.Err() != nil {
		return ended(t.caller)
	}
	if cause := context.Cause(t.process.parent); cause != nil {
		return tea.AsError(cause)
	}
	if exceeded := t.proxy.failure("", ""); exceeded != nil {
		return exceeded
	}
	var known *tea.Error
	if errors.As(err, &known) {
		return known
	}
	return tea.Errorf(tea.ConnectionError, "Chromium did not load the page: %w", err) // it has ended, or refused a command
}

package chromium

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/the-edge-agent/tea/plugins/web/internal/page"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/safenet"
)

// Browser loads pages. It starts Chromium for the first page and stops it when
// no page was loaded for a while. It is safe for concurrent use. The caller
// closes it.
type Browser struct {
	settings  Settings
	guard     *safenet.Guard
	dial      dialFunc // guard.Dial
	userAgent string
	maxHTML   int
	idleTime  time.Duration

	slots chan struct{} // has a value for each page being loaded
	turn  chan struct{} // has a value while the fields below are used

	current *process // nil if none is running
	users   int      // pages that current is loading
	idle    *time.Timer
	closed  bool
}

// New returns a browser that connects through guard. maxHTML limits a document, in
// characters; 0 means 10 MiB. An empty userAgent means Chromium's.
func New(s Settings, guard *safenet.Guard, userAgent string, maxHTML int) *Browser {
	s = s.withDefaults()
	return &Browser{
		settings: s, guard: guard, dial: guard.Dial, userAgent: userAgent, maxHTML: cmp.Or(maxHTML, 10<<20), idleTime: idleTimeout,
		slots: make(chan struct{}, s.MaxPages), turn: make(chan struct{}, 1),
	}
}

// Render implements [page.Renderer].
func (b *Browser) Render(ctx context.Context, u *url.URL, o page.RenderOptions) (*page.Rendered, error) {
	got, err := b.load(ctx, request{
		url: u.String(), selector: o.WaitFor.Selector, wait: time.Duration(o.WaitFor.Milliseconds) * time.Millisecond,
		screenshot: o.Screenshot, fullPage: o.FullPage, maxHTML: b.maxHTML,
	})
	if err != nil {
		return nil, err
	}
	final, err := safenet.ParseURL(got.url)
	if err != nil {
		return nil, err
	}
	r := &page.Rendered{URL: final, Status: got.status, ContentType: got.contentType, HTML: got.html, Screenshot: got.png}
	if got.cutAt > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("the screenshot has the first %d of %d rows of the page", maxShotHeight, got.cutAt))
	}
	if got.refused > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("parts of the page at %d hosts were not loaded because their addresses are not public", got.refused))
	}
	return r, nil
}

func (b *Browser) load(ctx context.Context, r request) (*loaded, error) {
	select {
	case b.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ended(ctx)
	}
	defer func() { <-b.slots }()
	p, err := b.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer b.release(p)
	proxy, err := startProxy(b.guard, b.dial, b.settings.MaxPageBytes)
	if err != nil {
		return nil, err
	}
	defer proxy.Close()
	return p.load(ctx, proxy, r)
}

// acquire returns the running process, or starts one.
func (b *Browser) acquire(ctx context.Context) (*process, error) {
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ended(ctx)
	}
	defer func() { <-b.turn }()
	if b.closed {
		return nil, tea.Errorf(tea.Canceled, "the browser is closed")
	}
	if b.current != nil && b.current.ctx.Err() != nil {
		b.current.stop(nil)
		b.current, b.users = nil, 0
	}
	if b.current == nil {
		p, err := startProcess(ctx, b.settings, b.userAgent)
		if err != nil {
			return nil, err
		}
		b.current = p
	}
	if b.idle != nil {
		b.idle.Stop()
	}
	b.users++
	return b.current, nil
}

// release ends a page's use of a process.
func (b *Browser) release(p *process) {
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	if p != b.current {
		return // it was replaced
	}
	if b.users--; b.users == 0 {
		b.idle = time.AfterFunc(b.idleTime, func() { b.stopIdle(p) })
	}
}

func (b *Browser) stopIdle(p *process) {
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	if p == b.current && b.users == 0 {
		p.stop(nil)
		b.current = nil
	}
}

// Close stops the browser and waits until its processes have ended and its
// files are removed. Pages that are being loaded fail.
func (b *Browser) Close() error {
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	b.closed = true
	if b.idle != nil {
		b.idle.Stop()
	}
	if b.current != nil {
		b.current.stop(tea.Errorf(tea.Canceled, "the browser is closed"))
		b.current = nil
	}
	return nil
}

// ended returns the reason why ctx ended.
func ended(ctx context.Context) *tea.Error { return tea.AsError(context.Cause(ctx)) }

package local

import (
	"cmp"
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/plugins/web/internal/extract"
	"github.com/the-edge-agent/tea/plugins/web/internal/page"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/safenet"
)

// Reader fetches pages. It is safe for concurrent use. The caller closes it.
type Reader struct {
	guard        *safenet.Guard
	transport    *http.Transport
	renderer     page.Renderer
	cache        *cache
	pace         pace
	userAgent    string
	timeout      time.Duration
	maxBody      int64
	maxRedirects int
	hostDelay    time.Duration
	workers      chan struct{} // limits concurrent conversions
}

// Open returns a reader. The version is part of the User-Agent header. The renderer
// runs pages with JavaScript; nil if there is none.
func Open(s Settings, version string, renderer page.Renderer) *Reader {
	guard := s.Guard()
	return &Reader{
		guard:        guard,
		transport:    guard.Transport(),
		renderer:     renderer,
		cache:        newCache(s.CacheDir, or(s.CacheMaxBytes, defaultCacheMaxBytes)),
		userAgent:    cmp.Or(s.UserAgent, "tea/"+version),
		timeout:      cmp.Or(seconds(s.Timeout), defaultTimeout),
		maxBody:      cmp.Or(s.MaxBodyBytes, defaultMaxBodyBytes),
		maxRedirects: or(s.MaxRedirects, defaultMaxRedirects),
		hostDelay:    seconds(or(s.HostDelay, defaultHostDelay.Seconds())),
		workers:      make(chan struct{}, max(2, runtime.GOMAXPROCS(0))),
	}
}

// Close closes idle connections.
func (r *Reader) Close() error {
	r.transport.CloseIdleConnections()
	return nil
}

// Scrape reads one page.
func (r *Reader) Scrape(ctx context.Context, p page.ScrapeParams) (*page.Page, error) {
	u, err := safenet.ParseURL(p.URL)
	if err != nil {
		return nil, err
	}
	if err := p.Check(false); err != nil {
		return nil, err
	}
	result, _, err := r.read(ctx, u, p.ReadOptions, fetchOptions{delay: r.hostDelay, limit: r.maxBody})
	return result, err
}

// read returns a page as a result and as a document.
func (r *Reader) read(ctx context.Context, u *url.URL, o page.ReadOptions, f fetchOptions) (*page.Page, *extract.Document, error) {
	timeout := cmp.Or(seconds(o.Timeout), r.timeout)
	expired := tea.Errorf(tea.Timeout, "GET %s: no complete response within %s (timeout)", u, timeout)
	expired.Source = u.Host
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, expired)
	defer cancel()
	if o.Render || o.Has(page.Screenshot) {
		return r.render(ctx, u, o, f)
	}
	resp, err := r.fetch(ctx, u, f)
	if err != nil {
		return nil, nil, err
	}
	source := extract.Source{URL: resp.url, ContentType: resp.header.Get("Content-Type"), Body: resp.body, MaxElements: r.maxElements()}
	result, doc, err := r.convert(ctx, source, o, func(c *converted) {
		c.doc.NoFollow = c.doc.NoFollow || extract.NoFollow(strings.Join(resp.header.Values("X-Robots-Tag"), ","))
		c.page.Metadata.StatusCode, c.page.Cached = resp.status, resp.cached
	})
	if err != nil {
		return nil, nil, requestError(ctx, u, err)
	}
	return result, doc, nil
}

// bytesPerElement is the size of a response for which one element of a page is read:
// elements need many times as much memory.
const bytesPerElement = 32

// maxElements is the maximum number of elements of a page that are read.
func (r *Reader) maxElements() int { return max(1, int(r.maxBody/bytesPerElement)) }

// render reads a page with the browser.
func (r *Reader) render(ctx context.Context, u *url.URL, o page.ReadOptions, f fetchOptions) (*page.Page, *extract.Document, error) {
	if r.renderer == nil {
		return nil, nil, tea.Errorf(tea.DependencyMissing, "this build cannot render pages")
	}
	if err := r.guard.CheckHost(u.Hostname()); err != nil {
		return nil, nil, err
	}
	if f.visit != nil {
		if err := f.visit(ctx, u); err != nil {
			return nil, nil, err
		}
	}
	if !f.paced {
		if err := r.pace.wait(ctx, u.Host, f.delay); err != nil {
			return nil, nil, requestError(ctx, u, err)
		}
	}
	rendered, err := r.renderer.Render(ctx, u, page.RenderOptions{WaitFor: o.WaitFor, Screenshot: o.Has(page.Screenshot), FullPage: o.FullPage})
	if err != nil {
		return nil, nil, requestError(ctx, u, err)
	}
	if rendered.Status < 200 || rendered.Status > 299 {
		return nil, nil, statusError(rendered.URL, &http.Response{StatusCode: rendered.Status})
	}
	if rendered.URL.String() != u.String() && f.visit != nil {
		if err := f.visit(ctx, rendered.URL); err != nil {
			return nil, nil, err
		}
	}
	if rendered.HTML == nil {
		o.Render, o.Formats = false, without(o.Formats, page.Screenshot)
		result, doc, err := r.read(ctx, rendered.URL, o, f)
		if err == nil {
			result.Notes = append(result.Notes, "the address is a file, which the browser does not show")
		}
		return result, doc, err
	}
	source := extract.Source{URL: rendered.URL, ContentType: "text/html; charset=utf-8", Body: rendered.HTML, Rendered: true, MaxElements: r.maxElements()}
	result, doc, err := r.convert(ctx, source, o, func(c *converted) {
		c.page.Metadata.StatusCode = rendered.Status
		c.page.Screenshot = base64.StdEncoding.EncodeToString(rendered.Screenshot)
		c.page.Notes = append(c.page.Notes, rendered.Notes...)
	})
	if err != nil {
		return nil, nil, requestError(ctx, u, err)
	}
	return result, doc, nil
}

// without returns the formats without one of them.
func without(formats []page.Format, format page.Format) []page.Format {
	var rest []page.Format
	for _, f := range formats {
		if f != format {
			rest = append(rest, f)
		}
	}
	return rest
}

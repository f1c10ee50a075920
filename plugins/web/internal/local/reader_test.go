package local_test

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/web/internal/local"
	"github.com/the-edge-agent/tea/plugins/web/internal/page"
	"github.com/the-edge-agent/tea/plugins/web/internal/testsite"
	tea "github.com/the-edge-agent/tea/sdk"
)

func serve(t testing.TB, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

// open returns a reader that may read the test's own servers, without a cache
// and without waits.
func open(t testing.TB, change func(*local.Settings)) *local.Reader {
	t.Helper()
	var none int64
	var now float64
	s := local.Settings{AllowPrivate: true, CacheMaxBytes: &none, HostDelay: &now, Timeout: 600}
	if change != nil {
		change(&s)
	}
	r := local.Open(s, "1.2.3", nil)
	t.Cleanup(func() { r.Close() })
	return r
}

func scrape(t testing.TB, r *local.Reader, url string, formats ...page.Format) (*page.Page, error) {
	t.Helper()
	return r.Scrape(t.Context(), page.ScrapeParams{URL: url, ReadOptions: page.ReadOptions{Formats: formats}})
}

// failure is what a workflow sees of an error.
type failure struct {
	Type      tea.ErrorType
	Retryable bool
	Message   string
}

func toFailure(err error, site string) failure {
	e := tea.AsError(err)
	if e == nil {
		return failure{}
	}
	return failure{e.Type, e.Retryable, strings.ReplaceAll(e.Message, site, "")}
}

func TestScrapeFailures(t *testing.T) {
	t.Parallel()
	site := serve(t, testsite.Handler())
	r := open(t, func(s *local.Settings) { s.MaxBodyBytes = 1 << 20 })
	tooLong := failure{tea.ResourceExhausted, false, ""}
	for path, want := range map[string]failure{
		"/loop":                             {tea.ConnectionError, false, "GET /loop: the redirects form a loop"},
		"/redirect/11":                      {tea.ConnectionError, false, "GET /redirect/0: more than 10 redirects (settings.web.max_redirects)"},
		"/away?to=file:///etc/passwd":       {tea.PermissionDenied, false, `GET /away?to=file:///etc/passwd: redirect refused: "file:///etc/passwd" is not an http or https URL`},
		"/away?to=http://0x7f.1/":           {tea.PermissionDenied, false, `GET /away?to=http://0x7f.1/: redirect refused: "0x7f.1" is not a valid host name; write an IPv4 address as four decimal numbers`},
		"/status/404":                       {tea.NotFound, false, "GET /status/404: status 404 Not Found"},
		"/status/403":                       {tea.PermissionDenied, false, "GET /status/403: status 403 Forbidden"},
		"/status/429":                       {tea.RateLimited, true, "GET /status/429: status 429 Too Many Requests"},
		"/status/503":                       {tea.ConnectionError, true, "GET /status/503: status 503 Service Unavailable"},
		"/status/304":                       {tea.ConnectionError, false, "GET /status/304: the response has the status 304 Not Modified and no Location header"},
		"/status/302":                       {tea.ConnectionError, false, "GET /status/302: the response has the status 302 Found and no Location header"},
		"/file.bin":                         {tea.ValidationError, false, "GET /file.bin: application/octet-stream has no text that can be read"},
		"/bomb/gzip":                        tooLong,
		"/bomb/br":                          tooLong,
		"/bomb/zstd":                        tooLong,
		"/bomb/deflate":                     tooLong,
		"/empty-bomb":                       tooLong,
		"/endless":                          tooLong,
		"/encoded/gzip+gzip+gzip+gzip+gzip": {tea.ConnectionError, false, "GET /encoded/gzip+gzip+gzip+gzip+gzip: the response has a content encoding that is not supported"},
	} {
		if want == tooLong {
			want.Message = "GET " + path + ": the response exceeds 1048576 bytes (settings.web.max_body_bytes)"
		}
		_, err := scrape(t, r, site.URL+path)
		if diff := cmp.Diff(want, toFailure(err, site.URL)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

// An option that would have no effect is an error.
func TestOptionsWithoutEffect(t *testing.T) {
	t.Parallel()
	r := open(t, nil)
	for want, o := range map[string]page.ReadOptions{
		"wait_for needs render: true":           {WaitFor: page.WaitFor{Selector: "#a"}},
		"wait_for must not be negative":         {WaitFor: page.WaitFor{Milliseconds: -1}, Render: true},
		"full_page needs the format screenshot": {FullPage: true, Render: true},
	} {
		_, err := r.Scrape(t.Context(), page.ScrapeParams{URL: "http://a.test/", ReadOptions: o})
		_, crawlErr := crawl(t, r, nil, page.CrawlParams{URL: "http://a.test/", ReadOptions: o})
		for _, err := range []error{err, crawlErr} {
			if diff := cmp.Diff(failure{tea.ValidationError, false, want}, toFailure(err, "")); diff != "" {
				t.Error(diff)
			}
		}
	}
}

// A server that sends nothing, or stops in the middle, costs no more than the
// page's time limit.
func TestScrapeStallingServers(t *testing.T) {
	t.Parallel()
	site := serve(t, testsite.Handler())
	r := open(t, nil)
	for _, path := range []string{"/stall", "/silent"} {
		_, err := r.Scrape(t.Context(), page.ScrapeParams{URL: site.URL + path, ReadOptions: page.ReadOptions{Timeout: 0.2}})
		want := failure{tea.Timeout, true, "GET " + path + ": no complete response within 200ms (timeout)"}
		if diff := cmp.Diff(want, toFailure(err, site.URL)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func TestScrapeEncodings(t *testing.T) {
	t.Parallel()
	site := serve(t, testsite.Handler())
	r := open(t, nil)
	for _, name := range []string{"gzip", "br", "zstd", "deflate", "gzip+br"} {
		p, err := scrape(t, r, site.URL+"/encoded/"+name)
		if err != nil {
			t.Fatal(err)
		}
		if want := "# encoded with " + name; !strings.HasPrefix(p.Markdown, want) {
			t.Errorf("%s: got %.60q, want a page that begins with %q", name, p.Markdown, want)
		}
	}
}

func TestScrapeFollowsRedirects(t *testing.T) {
	t.Parallel()
	site := serve(t, testsite.Handler())
	p, err := scrape(t, open(t, nil), site.URL+"/redirect/10")
	if err != nil {
		t.Fatal(err)
	}
	if p.URL != site.URL+"/redirect/0" || p.Metadata.StatusCode != http.StatusOK {
		t.Errorf("got %s, status %d", p.URL, p.Metadata.StatusCode)
	}
}

// Private addresses are refused in each notation, and after a redirect from an
// allowed host.
func TestScrapeRefusesPrivateAddresses(t *testing.T) {
	t.Parallel()
	site := serve(t, testsite.Handler())
	port := site.URL[strings.LastIndexByte(site.URL, ':'):]
	r := open(t, func(s *local.Settings) { s.AllowPrivate = false })
	for _, host := range []string{"127.0.0.1", "localhost", "localhost.", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "１２７.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0.0.0.0", "[::]", "[64:ff9b::7f00:1]"} {
		_, err := scrape(t, r, "http://"+host+port+"/")
		if e := tea.AsError(err); e == nil || e.Type != tea.PermissionDenied && e.Type != tea.ValidationError || e.Retryable {
			t.Errorf("%s: got %v, want a refusal", host, err)
		}
	}
}

// Neither cookies nor headers of one host reach another one.
func TestRedirectCarriesNothing(t *testing.T) {
	t.Parallel()
	var got http.Header
	other := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		w.Write([]byte("<p>there"))
	}))
	site := serve(t, testsite.Handler())
	target := strings.Replace(other.URL, "http://", "http://user:secret@", 1)
	if _, err := scrape(t, open(t, nil), site.URL+"/away?to="+target); err != nil {
		t.Fatal(err)
	}
	want := http.Header{"User-Agent": {"tea/1.2.3"}, "Accept": got["Accept"], "Accept-Encoding": {"gzip, br, zstd"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

func TestCacheAsksWhetherPageHasChanged(t *testing.T) {
	t.Parallel()
	var full atomic.Int32
	site := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") == "" {
			full.Add(1)
		}
		testsite.Handler().ServeHTTP(w, r)
	}))
	dir := filepath.Join(t.TempDir(), "cache")
	r := open(t, func(s *local.Settings) { s.CacheDir, s.CacheMaxBytes = dir, nil })
	first, err := scrape(t, r, site.URL+"/etag")
	if err != nil {
		t.Fatal(err)
	}
	second, err := scrape(t, r, site.URL+"/etag")
	if err != nil {
		t.Fatal(err)
	}
	if first.Cached || !second.Cached || first.Markdown != second.Markdown || full.Load() != 1 {
		t.Errorf("cached %v, then %v; %d full responses", first.Cached, second.Cached, full.Load())
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.page"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files: %v, %v", files, err)
	}
	for _, damage := range []func([]byte) []byte{
		func(b []byte) []byte { return b[:len(b)/2] },
		func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		func([]byte) []byte { return nil },
	} {
		data, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(files[0], damage(data), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := scrape(t, r, site.URL+"/etag")
		if err != nil || p.Cached || p.Markdown != first.Markdown {
			t.Errorf("damaged cache: cached %v, %v", p != nil && p.Cached, err)
		}
	}
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	body := "<p>" + strings.Repeat("x", 4000)
	site := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
		w.Write([]byte(body))
	}))
	dir := t.TempDir()
	limit := int64(100_000)
	r := open(t, func(s *local.Settings) { s.CacheDir, s.CacheMaxBytes = dir, &limit })
	for i := range 60 {
		if _, err := scrape(t, r, site.URL+"/"+strings.Repeat("a", i)); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if total > limit || len(entries) < 10 {
		t.Errorf("%d files of %d bytes in a cache of %d", len(entries), total, limit)
	}
}

// The requests to one host are spaced; one that would wait beyond its time
// limit fails immediately.
func TestHostDelay(t *testing.T) {
	t.Parallel()
	site := serve(t, testsite.Handler())
	minute := 60.0
	r := open(t, func(s *local.Settings) { s.HostDelay = &minute })
	if _, err := scrape(t, r, site.URL+"/etag"); err != nil {
		t.Fatal(err)
	}
	_, err := r.Scrape(t.Context(), page.ScrapeParams{URL: site.URL + "/etag", ReadOptions: page.ReadOptions{Timeout: 1}})
	e := tea.AsError(err)
	if e == nil || e.Type != tea.RateLimited || !e.Retryable || e.RetryAfter <= 0 {
		t.Fatalf("got %+v, want a rate_limited error with a wait", e)
	}
}

// A page that the libraries cannot convert in time does not outlive the call.
func TestScrapeIsCanceled(t *testing.T) {
	t.Parallel()
	site := serve(t, testsite.Handler())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := open(t, nil).Scrape(ctx, page.ScrapeParams{URL: site.URL + "/silent"})
	if e := tea.AsError(err); e == nil || e.Type != tea.Canceled {
		t.Errorf("got %v, want canceled", err)
	}
}

// A server whose certificate is not trusted is refused, and not asked again.
func TestScrapeChecksCertificates(t *testing.T) {
	t.Parallel()
	site := httptest.NewUnstartedServer(testsite.Handler())
	site.Config.ErrorLog = log.New(io.Discard, "", 0)
	site.StartTLS()
	t.Cleanup(site.Close)
	_, err := scrape(t, open(t, nil), site.URL+"/etag")
	if e := tea.AsError(err); e == nil || e.Type != tea.ConnectionError || e.Retryable || !strings.Contains(e.Message, "certificate") {
		t.Errorf("got %v, want a connection_error that is not retryable", err)
	}
}

func TestScrapeFormats(t *testing.T) {
	t.Parallel()
	site := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte(`<html lang="pt-BR"><head><title>Maré</title><meta charset=utf-8><meta name=description content="Sobre a maré"><link rel=canonical href="/c"><meta property="article:published_time" content="2026-03-04T05:06:07Z"></head>` +
			`<body><nav><a href="/nav">Nav</a></nav><main><h1>Maré</h1><p>Um <a href="a?b#c">texto</a> curto.</p></main></body></html>`))
	}))
	r := open(t, nil)
	p, err := scrape(t, r, site.URL+"/x/y", page.Markdown, page.HTML, page.Text, page.Links, page.Meta)
	if err != nil {
		t.Fatal(err)
	}
	want := &page.Page{
		Success: true, URL: site.URL + "/x/y",
		Markdown: "# Maré\n\nUm [texto](" + site.URL + "/x/a?b#c) curto.",
		HTML:     `<main><h1>Maré</h1><p>Um <a href="` + site.URL + `/x/a?b#c">texto</a> curto.</p></main>`,
		Text:     "Maré\n\nUm texto curto.",
		Links:    []page.Link{{URL: site.URL + "/nav", Text: "Nav"}, {URL: site.URL + "/x/a?b#c", Text: "texto"}},
		Metadata: page.Metadata{Title: "Maré", Description: "Sobre a maré", Language: "pt-BR", StatusCode: 200, Canonical: site.URL + "/c", Published: "2026-03-04T05:06:07Z", ContentType: "text/html"},
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	all := false
	p, err = r.Scrape(t.Context(), page.ScrapeParams{URL: site.URL + "/x/y", ReadOptions: page.ReadOptions{OnlyMainContent: &all}})
	if err != nil || !strings.Contains(p.Markdown, "[Nav]") || p.HTML != "" || p.Links != nil {
		t.Errorf("whole page: %+v, %v", p, err)
	}
}

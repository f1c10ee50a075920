package local_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/web/internal/local"
	"github.com/the-edge-agent/tea/plugins/web/internal/page"
	"github.com/the-edge-agent/tea/plugins/web/internal/testsite"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

func crawl(t testing.TB, r *local.Reader, host *teatest.Host, p page.CrawlParams) (*page.CrawlResult, error) {
	t.Helper()
	return r.Crawl(t.Context(), &tea.Request{Host: host, Call: tea.Call{IdempotencyKey: "k"}}, p)
}

// paths are the addresses of a crawl's pages on the site.
func paths(result *page.CrawlResult, site *httptest.Server) []string {
	var list []string
	for _, p := range result.Pages {
		list = append(list, strings.TrimPrefix(p.URL, site.URL))
	}
	return list
}

// A crawl reads the whole site, and what only the sitemap names, but nothing
// that robots.txt forbids and no other host.
func TestCrawlSite(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	requested := map[string]int{}
	site := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		requested[r.URL.Path]++
		mu.Unlock()
		testsite.Handler().ServeHTTP(w, r)
	}))
	result, err := crawl(t, open(t, nil), new(teatest.Host), page.CrawlParams{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/"}
	for _, p := range testsite.Pages() {
		want = append(want, p.Path)
	}
	want = append(want, "/private/open.html", "/only-in-sitemap.html")
	// Pages link to addresses that do not exist; those fail.
	if diff := cmp.Diff(want, paths(result, site)); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	if result.TotalPages != len(want) || result.JobID == "" {
		t.Errorf("total %d, job %q", result.TotalPages, result.JobID)
	}
	for path, n := range requested {
		if n > 1 || strings.HasPrefix(path, "/trap") || path == "/private/secret.html" || path == "/picture.png" {
			t.Errorf("%s was requested %d times", path, n)
		}
	}
	if result.Failed[0].Type != tea.NotFound || result.Skipped["robots"] < 2 || result.Skipped["other_host"] < 2 || result.Skipped["not_a_page"] < 1 {
		t.Errorf("failed %v, skipped %v", result.Failed[0], result.Skipped)
	}
}

func TestCrawlLimits(t *testing.T) {
	t.Parallel()
	site := serve(t, testsite.Handler())
	r := open(t, nil)
	zero, one := 0, 1
	for name, c := range map[string]struct {
		params page.CrawlParams
		want   []string
		note   string
	}{
		"max_depth 0": {page.CrawlParams{MaxDepth: &zero}, []string{"/"}, ""},
		"limit":       {page.CrawlParams{Limit: 3}, []string{"/", testsite.Pages()[0].Path, testsite.Pages()[1].Path}, "the limit of 3 pages is reached"},
		"include":     {page.CrawlParams{MaxDepth: &one, Include: []string{"/docs-*", "/lists-de*"}}, []string{"/", "/docs-ja-0.html", "/docs-de-1.html", "/lists-de-0.html"}, ""},
		"exclude":     {page.CrawlParams{MaxDepth: &one, Include: []string{"*-de-*"}, Exclude: []string{"/*-1.html$", "*/short"}}, []string{"/", "/divs-de-0.html", "/lists-de-0.html", "/xhtml-de-0.html"}, ""},
		"calendar":    {page.CrawlParams{URL: site.URL + "/calendar", Limit: 5}, []string{"/calendar", "/calendar?m=1", "/only-in-sitemap.html", "/calendar?m=2", "/calendar?m=3"}, ""},
	} {
		if c.params.URL == "" {
			c.params.URL = site.URL
		}
		result, err := crawl(t, r, new(teatest.Host), c.params)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, paths(result, site)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if c.note != "" && !strings.Contains(strings.Join(result.Notes, "\n"), c.note) {
			t.Errorf("%s: notes %q, want %q", name, result.Notes, c.note)
		}
	}
}

// A first page that cannot be read is an error of the crawl.
func TestCrawlFailures(t *testing.T) {
	t.Parallel()
	site := serve(t, testsite.Handler())
	noRobots := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "broken", http.StatusInternalServerError) }))
	r := open(t, nil)
	for _, c := range []struct {
		params page.CrawlParams
		want   failure
	}{
		{page.CrawlParams{URL: site.URL + "/private/secret.html"}, failure{tea.PermissionDenied, false, "GET /private/secret.html: robots.txt does not allow crawling this page"}},
		{page.CrawlParams{URL: site.URL + "/status/404"}, failure{tea.NotFound, false, "GET /status/404: status 404 Not Found"}},
		{page.CrawlParams{URL: site.URL + "/away?to=/trap/1"}, failure{tea.PermissionDenied, false, "GET /away?to=/trap/1: robots.txt does not allow crawling this page"}},
		{page.CrawlParams{URL: "ftp://example.com/"}, failure{tea.ValidationError, false, `"ftp://example.com/" is not an http or https URL`}},
		{page.CrawlParams{URL: site.URL, Include: []string{"docs/*"}}, failure{tea.ValidationError, false, `the pattern "docs/*" does not begin with /, * or http; write /docs/*`}},
		{page.CrawlParams{URL: noRobots.URL + "/x"}, failure{tea.ConnectionError, true, "GET " + noRobots.URL + "/x: robots.txt cannot be read, so nothing can be crawled: GET " + noRobots.URL + "/robots.txt: status 500 Internal Server Error"}},
	} {
		_, err := crawl(t, r, new(teatest.Host), c.params)
		if diff := cmp.Diff(c.want, toFailure(err, site.URL)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.params.URL, diff)
		}
	}
}

// A crawl that is repeated after a crash reads no page again, and returns what
// an undisturbed one returns.
func TestCrawlContinuesFromNotes(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	requested := map[string]int{}
	site := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		requested[r.URL.Path]++
		mu.Unlock()
		testsite.Handler().ServeHTTP(w, r)
	}))
	params := page.CrawlParams{URL: site.URL, Limit: 12}
	want, err := crawl(t, open(t, nil), new(teatest.Host), params)
	if err != nil {
		t.Fatal(err)
	}
	clear(requested)
	host := new(teatest.Host)
	crashes := 0
	for {
		crashing := &crashingHost{Host: host, left: 2}
		got, err := open(t, nil).Crawl(t.Context(), &tea.Request{Host: crashing, Call: tea.Call{IdempotencyKey: "k"}}, params)
		if errors.Is(err, errCrash) {
			crashes++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		break
	}
	if crashes < 3 {
		t.Errorf("only %d crashes", crashes)
	}
	for path, n := range requested {
		// The page whose note was lost is read twice.
		if path != "/robots.txt" && n > 2 {
			t.Errorf("%s was requested %d times", path, n)
		}
	}
}

// Another run continues a crawl by its job_id: it reads no page again, and
// returns what an undisturbed crawl returns.
func TestCrawlContinuesJobOfAnotherRun(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	requested := map[string]int{}
	site := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		requested[r.URL.Path]++
		mu.Unlock()
		testsite.Handler().ServeHTTP(w, r)
	}))
	dir := t.TempDir()
	cached := func(s *local.Settings) { s.CacheMaxBytes, s.CacheDir = nil, dir }
	run := func(key string, host tea.Host, p page.CrawlParams) (*page.CrawlResult, error) {
		return open(t, cached).Crawl(t.Context(), &tea.Request{Host: host, Call: tea.Call{IdempotencyKey: key}}, p)
	}
	params := page.CrawlParams{URL: site.URL, Limit: 12}
	want, err := crawl(t, open(t, nil), new(teatest.Host), params)
	if err != nil {
		t.Fatal(err)
	}
	clear(requested)
	first := new(teatest.Host)
	if _, err := run("first", &crashingHost{Host: first, left: 5}, params); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	params.JobID, _ = first.Recorded().Logs[0].Fields["job_id"].(string)
	second := new(teatest.Host)
	if _, err := run("second", &crashingHost{Host: second, left: 3}, params); !errors.Is(err, errCrash) {
		t.Fatalf("while the job is taken over: %v", err)
	}
	if _, err := run("second", &crashingHost{Host: second, left: 5}, params); !errors.Is(err, errCrash) {
		t.Fatalf("after the job was taken over: %v", err)
	}
	got, err := run("second", second, params)
	if err != nil {
		t.Fatal(err)
	}
	if got.JobID == params.JobID {
		t.Error("both crawls have the same job_id")
	}
	for path, n := range requested {
		if path != "/robots.txt" && n > 2 { // the page whose note was lost is read twice
			t.Errorf("%s was requested %d times", path, n)
		}
	}
	requests := len(requested)
	more, err := run("third", new(teatest.Host), page.CrawlParams{URL: site.URL, Limit: 15, JobID: got.JobID})
	if err != nil || len(more.Pages) != 15 || len(requested) > requests+3 {
		t.Errorf("with a larger limit: %d pages, %d further requests, %v", len(more.Pages), len(requested)-requests, err)
	}
	want.JobID, got.JobID = "", ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A job that cannot be continued is an error, not a new crawl.
func TestCrawlOfUnknownJob(t *testing.T) {
	t.Parallel()
	site := serve(t, testsite.Handler())
	dir := t.TempDir()
	r := open(t, func(s *local.Settings) { s.CacheMaxBytes, s.CacheDir = nil, dir })
	result, err := crawl(t, r, new(teatest.Host), page.CrawlParams{URL: site.URL, Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reader  *local.Reader
		id, url string
		want    tea.ErrorType
	}{
		{r, "0123456789abcdef", site.URL, tea.NotFound},
		{r, "../" + result.JobID, site.URL, tea.NotFound},
		{r, result.JobID, site.URL + "/other", tea.ValidationError},
		{open(t, nil), result.JobID, site.URL, tea.NotFound},
	} {
		if _, err := crawl(t, c.reader, new(teatest.Host), page.CrawlParams{URL: c.url, JobID: c.id}); tea.AsError(err) == nil || tea.AsError(err).Type != c.want {
			t.Errorf("%s at %s: got %v, want %s", c.id, c.url, err, c.want)
		}
	}
	// What follows a broken line is read again.
	file := filepath.Join(dir, "crawls", result.JobID+".steps")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data[:len(data)-10], 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := crawl(t, r, new(teatest.Host), page.CrawlParams{URL: site.URL, Limit: 2, JobID: result.JobID}); err != nil || len(got.Pages) != 2 {
		t.Errorf("with a broken line: %v, %v", got, err)
	}
}

var errCrash = errors.New("crash")

// crashingHost fails after some notes, as a host that is killed.
type crashingHost struct {
	*teatest.Host
	left int
}

func (h *crashingHost) SetNote(ctx context.Context, key string, note any) error {
	if h.left == 0 {
		return errCrash
	}
	h.left--
	return h.Host.SetNote(ctx, key, note)
}

// The delay of robots.txt is applied, up to a limit; a broken line changes
// nothing.
func TestCrawlReadsRobots(t *testing.T) {
	t.Parallel()
	for robots, want := range map[string][]string{
		"User-agent: *\nDisallow: /a\n\nUser-agent: *\nDisallow: /b":                       {"/"},
		"User-agent: x\nUser-agent: TEA\nDisallow: /a":                                     {"/", "/b"},
		"User-agent: *\nDisallow: /a\nAllow: /a\nDisallow: /b":                             {"/", "/a"},
		"User-agent: *\nDisallow: /" + strings.Repeat("x", 100_000) + "\nDisallow: /b":     {"/", "/a"},
		"Disallow: /a\nUser-agent: *\nDisallow: /b":                                        {"/", "/a"},
		"User-agent: *\nDisallow: /b\n" + strings.Repeat("Disallow: /cccccc\n", 1_000_000): {"/", "/a"},
		"":                           {"/", "/a", "/b"},
		"User-agent: *\nDisallow: /": nil,
		"User-agent: tea\nDisallow: /a\n\nUser-agent: *\nDisallow: /":                    {"/", "/b"},
		"\ufeffUser-agent: *\r\nDisallow: /b # comment\r\nCrawl-delay: soon\r\nNonsense": {"/", "/a"},
		"User-agent: other\nDisallow: /":                                                 {"/", "/a", "/b"},
		"User-agent: *\nAllow: /$\nAllow: /b\nDisallow: /*":                              {"/", "/b"},
		"User-agent: *\nDisallow:":                                                       {"/", "/a", "/b"},
	} {
		site := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/robots.txt":
				w.Write([]byte(robots))
			case "/sitemap.xml":
				http.NotFound(w, r)
			default:
				fmt.Fprintf(w, `<title>%s</title><p>%s</p><a href="/a">a</a><a href="/b">b</a>`, r.URL.Path, r.URL.Path)
			}
		}))
		result, err := crawl(t, open(t, nil), new(teatest.Host), page.CrawlParams{URL: site.URL})
		if want == nil {
			if e := tea.AsError(err); e == nil || e.Type != tea.PermissionDenied {
				t.Errorf("%q: got %v, want a refusal", robots, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%q: %v", robots, err)
		}
		if diff := cmp.Diff(want, paths(result, site)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", robots, diff)
		}
	}
}

// Pages that link to themselves at ever longer addresses do not take more than
// a few steps.
func TestCrawlAvoidsTraps(t *testing.T) {
	t.Parallel()
	site := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" || r.URL.Path == "/sitemap.xml" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, `<title>%s</title><p>%s</p><a href="x/">relative</a><a href="/same?b=2&a=1">same</a><a href="/same?a=1&b=2&utm_source=y">same</a>`, r.URL, r.URL)
	}))
	depth := 100
	result, err := crawl(t, open(t, nil), new(teatest.Host), page.CrawlParams{URL: site.URL, MaxDepth: &depth, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/", "/x/", "/same?b=2&a=1", "/x/x/", "/x/x/x/"}
	if diff := cmp.Diff(want, paths(result, site)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// handler serves a site of pages without robots.txt and sitemap.
func handler(pages map[string]http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := pages[r.URL.Path]; h != nil {
			h(w, r)
			return
		}
		http.NotFound(w, r)
	})
}

func text(markup string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, markup)
	}
}

// What pages ask of crawlers is done: nofollow in the page or in a header.
func TestCrawlObeysNoFollow(t *testing.T) {
	t.Parallel()
	site := serve(t, handler(map[string]http.HandlerFunc{
		"/":  text(`<title>first</title><a href="/a">a</a><a href="/b">b</a>`),
		"/a": text(`<meta name="robots" content="noindex, NoFollow"><title>a</title><a href="/c">c</a>`),
		"/b": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Robots-Tag", "none")
			fmt.Fprint(w, `<title>b</title><a href="/c">c</a>`)
		},
		"/c": text("<title>c</title>"),
	}))
	result, err := crawl(t, open(t, nil), new(teatest.Host), page.CrawlParams{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/", "/a", "/b"}, paths(result, site)); diff != "" || result.Skipped["nofollow"] != 2 {
		t.Errorf("skipped %v, -want +got:\n%s", result.Skipped, diff)
	}
}

// A crawl of all hosts asks each for its robots.txt; one of a single host does
// not follow a redirect to another one.
func TestCrawlOfTwoHosts(t *testing.T) {
	t.Parallel()
	other := serve(t, handler(map[string]http.HandlerFunc{
		"/robots.txt": text("User-agent: *\nDisallow: /no"),
		"/yes":        text("<title>yes</title><p>there"),
		"/no":         text("<title>no</title>"),
	}))
	site := serve(t, handler(map[string]http.HandlerFunc{
		"/":     text(`<title>first</title><a href="` + other.URL + `/no">no</a><a href="` + other.URL + `/yes">yes</a><a href="/move">move</a>`),
		"/move": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL+"/yes", http.StatusFound) },
	}))
	no := false
	all, err := crawl(t, open(t, nil), new(teatest.Host), page.CrawlParams{URL: site.URL, SameHost: &no})
	if err != nil {
		t.Fatal(err)
	}
	one, err := crawl(t, open(t, nil), new(teatest.Host), page.CrawlParams{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/", other.URL + "/yes"}, paths(all, site)); diff != "" || all.Skipped["robots"] != 1 || all.Skipped["duplicate"] != 1 {
		t.Errorf("all hosts: skipped %v, -want +got:\n%s", all.Skipped, diff)
	}
	if diff := cmp.Diff([]string{"/"}, paths(one, site)); diff != "" || one.Skipped["other_host"] != 3 {
		t.Errorf("one host: skipped %v, -want +got:\n%s", one.Skipped, diff)
	}
}

// A failure that passes is repeated, one that does not is listed.
func TestCrawlRepeatsFailures(t *testing.T) {
	t.Parallel()
	var busy atomic.Int32
	site := serve(t, handler(map[string]http.HandlerFunc{
		"/": text(`<title>first</title><a href="/busy">busy</a><a href="/gone">gone</a>`),
		"/busy": func(w http.ResponseWriter, _ *http.Request) {
			if busy.Add(1) == 1 {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			fmt.Fprint(w, "<title>busy</title>")
		},
	}))
	result, err := crawl(t, open(t, nil), new(teatest.Host), page.CrawlParams{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/", "/busy"}, paths(result, site)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want := []page.FailedPage{{URL: site.URL + "/gone", Error: "GET " + site.URL + "/gone: status 404 Not Found", Type: tea.NotFound}}
	if diff := cmp.Diff(want, result.Failed); diff != "" {
		t.Errorf("failed (-want +got):\n%s", diff)
	}
}

// A site whose pages all fail ends the crawl before its limit.
func TestCrawlEndsAfterTooManyFailures(t *testing.T) {
	t.Parallel()
	var links strings.Builder
	for i := range 100 {
		fmt.Fprintf(&links, `<a href="/gone/%d">x</a>`, i)
	}
	site := serve(t, handler(map[string]http.HandlerFunc{"/": text("<title>first</title>" + links.String())}))
	result, err := crawl(t, open(t, nil), new(teatest.Host), page.CrawlParams{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"20 pages in a row could not be read; 80 addresses were not read"}, result.Notes); diff != "" {
		t.Error(diff)
	}
}

// Sitemaps can be compressed, name further ones, and be broken.
func TestCrawlReadsSitemaps(t *testing.T) {
	t.Parallel()
	var site *httptest.Server
	fill := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.ReplaceAll(s, "HOST", site.URL)) }
	}
	site = serve(t, handler(map[string]http.HandlerFunc{
		"/robots.txt": fill("Sitemap: HOST/index.xml\nSitemap: HOST/broken.xml\nSitemap: http://127.0.0.1:1/x.xml\nSitemap: file:///etc/passwd"),
		"/index.xml":  fill(`<?xml version="1.0"?><sitemapindex><sitemap><loc>HOST/packed.xml.gz</loc></sitemap><sitemap><loc>HOST/index.xml</loc></sitemap></sitemapindex>`),
		"/broken.xml": fill(`<urlset><url><loc> HOST/c </loc></url><url><loc>HOST/d`),
		"/packed.xml.gz": func(w http.ResponseWriter, _ *http.Request) {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			fmt.Fprintf(z, `<urlset><url><loc>%s/b</loc></url></urlset>`, site.URL)
			z.Close()
			w.Write(b.Bytes())
		},
		"/": text("<title>first</title>"), "/b": text("<title>b</title>"), "/c": text("<title>c</title>"),
	}))
	result, err := crawl(t, open(t, nil), new(teatest.Host), page.CrawlParams{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/", "/c", "/b"}, paths(result, site)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(result.Notes) != 2 || !strings.HasPrefix(result.Notes[0], "a sitemap could not be read: GET http://127.0.0.1:1/x.xml: ") ||
		result.Notes[1] != `a sitemap could not be read: "file:///etc/passwd" is not an http or https URL` {
		t.Errorf("notes %q", result.Notes)
	}
}

// Sitemaps that are longer than a crawl can use are read in part.
func TestCrawlOfHugeSitemaps(t *testing.T) {
	t.Parallel()
	var site *httptest.Server
	long := strings.Repeat("x", 1_900)
	urls := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "<urlset>")
		for i := range 2_500 {
			fmt.Fprintf(w, "<url><loc>%s/%d/%s</loc></url>", site.URL+r.URL.Path, i, long)
		}
	}
	site = serve(t, handler(map[string]http.HandlerFunc{
		"/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, strings.ReplaceAll("Sitemap: HOST/a\nSitemap: HOST/b\nSitemap: HOST/c", "HOST", site.URL))
		},
		"/": text("<title>first</title>"), "/a": urls, "/b": urls, "/c": urls,
	}))
	result, err := crawl(t, open(t, func(s *local.Settings) { s.MaxBodyBytes = 4 << 20 }), new(teatest.Host), page.CrawlParams{URL: site.URL, Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	if result.Skipped["too_many"] == 0 {
		t.Errorf("skipped %v", result.Skipped)
	}
	want := "only the first 4194304 bytes of the sitemap " + site.URL + "/a were read"
	if len(result.Notes) == 0 || result.Notes[0] != want {
		t.Errorf("notes %q", result.Notes)
	}
}

package web_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/web"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/httpapi/servertest"
)

// fakeFirecrawl is a server that speaks the Firecrawl API as documented. A job
// is completed after a number of requests for its status, and its pages come in
// parts of two.
type fakeFirecrawl struct {
	*httptest.Server
	version string
	polls   int  // until a job is completed; negative: never
	lost    bool // the answer to the next start does not arrive

	mu       sync.Mutex
	requests []string
	bodies   []map[string]any
	keys     map[string]bool // idempotency keys
	jobs     map[string]*fakeJob
	polled   chan struct{}
	deleted  chan string
}

type fakeJob struct {
	url    string
	polls  int
	status string
}

func startFirecrawl(t *testing.T, version string, polls int) *fakeFirecrawl {
	t.Helper()
	f := &fakeFirecrawl{version: version, polls: polls, keys: map[string]bool{}, jobs: map[string]*fakeJob{}, polled: make(chan struct{}, 100), deleted: make(chan string, 10)}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fakeFirecrawl) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var body map[string]any
	_ = json.NewDecoder(r.Body).Decode(&body)
	f.requests = append(f.requests, r.Method+" "+r.URL.RequestURI())
	if body != nil {
		f.bodies = append(f.bodies, body)
	}
	w.Header().Set("Content-Type", "application/json")
	path := strings.TrimPrefix(r.URL.Path, "/"+f.version)
	id := strings.TrimPrefix(path, "/crawl/")
	switch {
	case r.Header.Get("Authorization") != "Bearer "+testKey:
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"success":false,"error":"Unauthorized: Invalid token"}`)
	case path == "/scrape":
		f.scrape(w, body)
	case path == "/crawl" && r.Method == http.MethodPost:
		f.start(w, r, body)
	case path == "/crawl/active":
		f.active(w)
	case strings.HasSuffix(path, "/errors"):
		io.WriteString(w, `{"errors":[{"id":"1","timestamp":null,"url":"https://a.test/broken","error":"SCRAPE_DNS_RESOLUTION_ERROR"}],"robotsBlocked":["https://a.test/private"]}`)
	case f.jobs[id] == nil:
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"success":false,"error":"Job not found"}`)
	case r.Method == http.MethodDelete:
		f.jobs[id].status = "cancelled"
		f.deleted <- id
		io.WriteString(w, `{"status":"cancelled"}`)
	default:
		f.status(w, r, f.jobs[id])
	}
}

func (f *fakeFirecrawl) scrape(w io.Writer, body map[string]any) {
	address := fmt.Sprint(body["url"])
	data := map[string]any{
		"markdown": "# Pots\n\nAbout pots.", "html": "<h1>Pots</h1><p>About <b>pots</b>.</p>", "links": []string{"https://a.test/next"},
		"screenshot": "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte("picture")), "warning": "a warning of the page",
		"metadata": map[string]any{"title": []string{"Pots", "A shop"}, "description": "About pots", "language": "en", "sourceURL": address, "url": address + "#final", "statusCode": 200, "contentType": "text/html"},
	}
	if strings.HasSuffix(address, "/gone") {
		data["metadata"] = map[string]any{"sourceURL": address, "statusCode": 404, "error": "Not Found"}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"success": true, "data": data})
}

func (f *fakeFirecrawl) start(w http.ResponseWriter, r *http.Request, body map[string]any) {
	if key := r.Header.Get("X-Idempotency-Key"); key != "" {
		if f.keys[key] {
			w.WriteHeader(http.StatusConflict)
			io.WriteString(w, `{"success":false,"error":"Idempotency key already used"}`)
			return
		}
		f.keys[key] = true
	}
	id := fmt.Sprintf("job-%d", len(f.jobs)+1)
	f.jobs[id] = &fakeJob{url: fmt.Sprint(body["url"]), status: "scraping"}
	if f.lost {
		f.lost = false
		panic(http.ErrAbortHandler)
	}
	fmt.Fprintf(w, `{"success":true,"id":%q,"url":"https://api.firecrawl.dev/%s/crawl/%s"}`, id, f.version, id)
}

func (f *fakeFirecrawl) active(w io.Writer) {
	crawls := []any{}
	for id, j := range f.jobs {
		if j.status == "scraping" {
			crawls = append(crawls, map[string]any{"id": id, "teamId": "t", "url": j.url, "options": nil})
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"success": true, "crawls": crawls})
}

func (f *fakeFirecrawl) status(w io.Writer, r *http.Request, j *fakeJob) {
	if j.polls++; f.polls >= 0 && j.polls > f.polls && j.status == "scraping" {
		j.status = "completed"
	}
	answer := map[string]any{"success": true, "status": j.status, "total": 5, "completed": min(j.polls, 5), "creditsUsed": 5, "expiresAt": "2099-01-01T00:00:00.000Z", "data": []any{}}
	if j.status == "completed" {
		var skip int
		_, _ = fmt.Sscan(r.URL.Query().Get("skip"), &skip)
		data := []any{}
		for i := skip; i < min(skip+2, 5); i++ {
			status := 200
			if i == 3 {
				status = 404
			}
			data = append(data, map[string]any{"markdown": fmt.Sprintf("page %d", i), "metadata": map[string]any{"sourceURL": fmt.Sprintf("https://a.test/%d", i), "statusCode": status}})
		}
		answer["data"] = data
		if skip+2 < 5 {
			// The key must not be sent to the host that is named here.
			answer["next"] = fmt.Sprintf("https://elsewhere.test/%s/crawl/%s?skip=%d", f.version, "job-1", skip+2)
		}
	}
	_ = json.NewEncoder(w).Encode(answer)
	select {
	case f.polled <- struct{}{}:
	default:
	}
}

func (f *fakeFirecrawl) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.requests...)
}

func (f *fakeFirecrawl) settings() map[string]any {
	return map[string]any{"web": map[string]any{"provider": "firecrawl", "firecrawl": map[string]any{
		"version": f.version, "api_base": f.URL, "api_key": testKey, "max_retries": 0,
	}}}
}

func TestFirecrawlScrape(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v1", "v2"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			f := startFirecrawl(t, version, 0)
			got, err := teatest.Call(t, web.Bundle(), teatest.Request{Action: "web.scrape", Settings: f.settings(), Params: map[string]any{
				"url": "https://a.test/pots", "formats": []any{"markdown", "html", "text", "links", "screenshot"}, "wait_for": "#done", "timeout": 20, "only_main_content": false,
			}})
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]any{
				"success": true, "url": "https://a.test/pots#final", "markdown": "# Pots\n\nAbout pots.", "html": "<h1>Pots</h1><p>About <b>pots</b>.</p>",
				"text": "Pots\n\nAbout pots.", "links": []any{map[string]any{"url": "https://a.test/next"}},
				"screenshot": base64.StdEncoding.EncodeToString([]byte("picture")), "notes": []any{"a warning of the page"},
				"metadata": map[string]any{"title": "Pots, A shop", "description": "About pots", "language": "en", "status_code": int64(200), "content_type": "text/html"},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			sent := map[string]any{
				"url": "https://a.test/pots", "formats": []any{"markdown", "html", "links", "screenshot"}, "onlyMainContent": false, "timeout": 20000.0,
				"actions": []any{map[string]any{"type": "wait", "selector": "#done"}},
			}
			if diff := cmp.Diff(sent, f.bodies[0]); diff != "" {
				t.Error(diff)
			}
			_, err = teatest.Call(t, web.Bundle(), teatest.Request{Action: "web.scrape", Settings: f.settings(), Params: map[string]any{
				"url": "https://a.test/pots", "formats": []any{"screenshot"}, "full_page": true,
			}})
			if err != nil {
				t.Fatal(err)
			}
			wholePage := map[string][]any{"v1": {"screenshot@fullPage"}, "v2": {map[string]any{"type": "screenshot", "fullPage": true}}}
			if diff := cmp.Diff(wholePage[version], f.bodies[1]["formats"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFirecrawlRefuses(t *testing.T) {
	t.Parallel()
	f := startFirecrawl(t, "v2", 0)
	wrong := f.settings()
	wrong["web"].(map[string]any)["firecrawl"].(map[string]any)["api_key"] = "wrong"
	none := map[string]any{"web": map[string]any{"provider": "firecrawl"}}
	for name, c := range map[string]struct {
		settings map[string]any
		url      string
		want     tea.ErrorType
		text     string
	}{
		"page not found": {f.settings(), "https://a.test/gone", tea.NotFound, "status 404 Not Found"},
		"private":        {f.settings(), "http://169.254.169.254/", tea.PermissionDenied, "not a public address"},
		"file":           {f.settings(), "file:///etc/passwd", tea.ValidationError, "http"},
		"wrong key":      {wrong, "https://a.test/", tea.PermissionDenied, "Invalid token"},
		"no key":         {none, "https://a.test/", tea.ValidationError, "set settings.web.firecrawl.api_key"},
	} {
		_, err := teatest.Call(t, web.Bundle(), teatest.Request{Action: "web.scrape", Settings: c.settings, Params: map[string]any{"url": c.url}})
		if e := tea.AsError(err); e == nil || e.Type != c.want || !strings.Contains(e.Message, c.text) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// An answer with status 200 that is an error, or has no page, is not an empty
// page.
func TestFirecrawlAnswersWithoutPages(t *testing.T) {
	t.Parallel()
	const completed = `{"success":true,"status":"completed","total":9,"completed":9,"next":"https://a.test/v2/crawl/1?skip=1","data":[{"markdown":"x","metadata":{"statusCode":200}}]}`
	call := func(action string, replies ...string) (any, error) {
		list := make([]servertest.Reply, len(replies))
		for i, body := range replies {
			list[i].Chunks = []string{body}
		}
		server := servertest.Start(t, list...)
		settings := map[string]any{"web": map[string]any{"provider": "firecrawl", "firecrawl": map[string]any{"api_base": server.URL, "max_retries": 0}}}
		return teatest.Call(t, web.Bundle(), teatest.Request{Action: action, Settings: settings, Params: map[string]any{"url": "https://a.test/"}})
	}
	for _, body := range []string{`{}`, `{"success":false}`, `{"success":true}`, `{"error":"try later"}`, `{"success":true,"data":null}`} {
		if got, err := call("web.scrape", body); tea.AsError(err) == nil || tea.AsError(err).Type != tea.ConnectionError {
			t.Errorf("web.scrape, %s: got %v, %v", body, got, err)
		}
		if body == `{"success":true,"data":null}` {
			continue
		}
		if got, err := call("web.crawl", `{"success":true,"id":"1"}`, body); tea.AsError(err) == nil || tea.AsError(err).Type != tea.ConnectionError {
			t.Errorf("web.crawl, status %s: got %v, %v", body, got, err)
		}
		if got, err := call("web.crawl", `{"success":true,"id":"1"}`, completed, body); tea.AsError(err) == nil || tea.AsError(err).Type != tea.ConnectionError {
			t.Errorf("web.crawl, second part %s: got %v, %v", body, got, err)
		}
	}
}

// A server that names a next part without end is asked until the limit is
// reached, also if all pages have failed.
func TestFirecrawlPartsWithoutEnd(t *testing.T) {
	t.Parallel()
	var parts atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			io.WriteString(w, `{"success":true,"id":"1"}`)
		case strings.HasSuffix(r.URL.Path, "/errors"):
			io.WriteString(w, `{"errors":[]}`)
		default:
			n := parts.Add(1)
			fmt.Fprintf(w, `{"success":true,"status":"completed","next":"/v2/crawl/1?skip=%d","data":[{"metadata":{"sourceURL":"https://a.test/%d","statusCode":500}}]}`, n, n)
		}
	}))
	t.Cleanup(server.Close)
	settings := map[string]any{"web": map[string]any{"provider": "firecrawl", "firecrawl": map[string]any{"api_base": server.URL}}}
	got, err := teatest.Call(t, web.Bundle(), teatest.Request{Action: "web.crawl", Settings: settings, Params: map[string]any{"url": "https://a.test/"}})
	if err != nil {
		t.Fatal(err)
	}
	if failed := got.(map[string]any)["failed"].([]any); len(failed) != 100 { // the default of limit
		t.Errorf("%d failures", len(failed))
	}
}

var crawlParams = map[string]any{"url": "https://a.test/", "limit": 10, "max_depth": 2, "include": []any{"/docs/*.html$"}, "exclude": []any{"/docs/old"}, "delay": 1, "same_host": false}

func TestFirecrawlCrawl(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v1", "v2"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			f := startFirecrawl(t, version, 1)
			host := new(teatest.Host)
			got, err := teatest.Call(t, web.Bundle(), teatest.Request{Action: "web.crawl", Settings: f.settings(), Params: crawlParams, Host: host, Call: tea.Call{IdempotencyKey: "key"}})
			if err != nil {
				t.Fatal(err)
			}
			result, _ := got.(map[string]any)
			var addresses []any
			for _, p := range result["pages"].([]any) {
				addresses = append(addresses, p.(map[string]any)["url"])
			}
			if diff := cmp.Diff([]any{"https://a.test/0", "https://a.test/1", "https://a.test/2", "https://a.test/4"}, addresses); diff != "" {
				t.Error(diff)
			}
			want := map[string]any{
				"success": true, "total_pages": int64(4), "job_id": "job-1", "skipped": map[string]any{"robots": int64(1)},
				"failed": []any{
					map[string]any{"url": "https://a.test/3", "error": "GET https://a.test/3: status 404 Not Found", "error_type": "not_found"},
					map[string]any{"url": "https://a.test/broken", "error": "SCRAPE_DNS_RESOLUTION_ERROR", "error_type": "connection_error"},
				},
			}
			delete(result, "pages")
			if diff := cmp.Diff(want, result); diff != "" {
				t.Error(diff)
			}
			sent := map[string]any{
				"url": "https://a.test/", "limit": 10.0, "maxDiscoveryDepth": 2.0, "includePaths": []any{`^/docs/.*\.html$`}, "excludePaths": []any{"^/docs/old"},
				"delay": 1.0, "allowExternalLinks": true, "crawlEntireDomain": true,
				"scrapeOptions": map[string]any{"formats": []any{"markdown"}, "onlyMainContent": true},
			}
			if diff := cmp.Diff(sent, f.bodies[0]); diff != "" {
				t.Error(diff)
			}
			if len(host.Recorded().Progress) == 0 {
				t.Error("no progress")
			}
		})
	}
}

// The request for a crawl is the one that Firecrawl's own client for Python
// (4.53.2) sends for the same options, recorded in testdata.
func TestFirecrawlCrawlIsThatOfItsClient(t *testing.T) {
	t.Parallel()
	f := startFirecrawl(t, "v1", 0)
	params := map[string]any{"formats": []any{"markdown", "screenshot"}, "full_page": true, "timeout": 30}
	for name, v := range crawlParams {
		params[name] = v
	}
	if _, err := teatest.Call(t, web.Bundle(), teatest.Request{Action: "web.crawl", Settings: f.settings(), Params: params}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("testdata/firecrawl-v1-crawl.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, f.bodies[0]); diff != "" {
		t.Error(diff)
	}
}

// A pattern of whole addresses makes Firecrawl match all patterns with them.
func TestFirecrawlPatternsOfAddresses(t *testing.T) {
	t.Parallel()
	f := startFirecrawl(t, "v2", 0)
	_, err := teatest.Call(t, web.Bundle(), teatest.Request{Action: "web.crawl", Settings: f.settings(), Params: map[string]any{
		"url": "https://a.test/", "include": []any{"https://a.test/docs/*", "/faq$"}, "exclude": []any{"*.pdf$"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"includePaths": []any{`^https://a\.test/docs/.*`, `^https?://[^/]+/faq$`}, "excludePaths": []any{`^https?://[^/]+.*\.pdf$`}, "regexOnFullURL": true,
	}
	got := map[string]any{}
	for name := range want {
		got[name] = f.bodies[0][name]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFirecrawlCrawlResumes(t *testing.T) {
	t.Parallel()
	crawl := func(t *testing.T, f *fakeFirecrawl, host *teatest.Host) (map[string]any, error) {
		t.Helper()
		got, err := teatest.Call(t, web.Bundle(), teatest.Request{Action: "web.crawl", Settings: f.settings(), Params: map[string]any{"url": "https://a.test/"}, Host: host, Call: tea.Call{IdempotencyKey: "key"}})
		result, _ := got.(map[string]any)
		return result, err
	}
	started := func(f *fakeFirecrawl) (n int) {
		for _, r := range f.seen() {
			if r == "POST /v2/crawl" {
				n++
			}
		}
		return n
	}
	t.Run("with the job of the note", func(t *testing.T) {
		t.Parallel()
		f := startFirecrawl(t, "v2", 0)
		f.jobs["job-1"] = &fakeJob{url: "https://a.test/", status: "scraping"}
		host := &teatest.Host{Notes: map[string]any{"web.crawl/firecrawl": map[string]any{"id": "job-1", "url": "https://a.test/"}}}
		if result, err := crawl(t, f, host); err != nil || result["job_id"] != "job-1" || started(f) != 0 {
			t.Errorf("got %v, %v, %d starts", result["job_id"], err, started(f))
		}
	})
	t.Run("with another job where it was cancelled", func(t *testing.T) {
		t.Parallel()
		f := startFirecrawl(t, "v2", 0)
		f.jobs["job-1"] = &fakeJob{url: "https://a.test/", status: "cancelled"}
		host := &teatest.Host{Notes: map[string]any{"web.crawl/firecrawl": map[string]any{"id": "job-1", "url": "https://a.test/"}}}
		if result, err := crawl(t, f, host); err != nil || result["job_id"] != "job-2" || started(f) != 1 {
			t.Errorf("got %v, %v, %d starts", result["job_id"], err, started(f))
		}
	})
	t.Run("with the job of another run", func(t *testing.T) {
		t.Parallel()
		f := startFirecrawl(t, "v2", 0)
		f.jobs["job-1"] = &fakeJob{url: "https://a.test/", status: "scraping"}
		continued := func(id string) (any, error) {
			return teatest.Call(t, web.Bundle(), teatest.Request{Action: "web.crawl", Settings: f.settings(), Params: map[string]any{"url": "https://a.test/", "job_id": id}})
		}
		if got, err := continued("job-1"); err != nil || got.(map[string]any)["total_pages"] != int64(4) || started(f) != 0 {
			t.Errorf("got %v, %v, %d starts", got, err, started(f))
		}
		if _, err := continued("job-9"); tea.AsError(err) == nil || tea.AsError(err).Type != tea.NotFound || started(f) != 0 {
			t.Errorf("a job that is not there: %v, %d starts", err, started(f))
		}
	})
	t.Run("with the job whose start was not answered", func(t *testing.T) {
		t.Parallel()
		f := startFirecrawl(t, "v2", 0)
		f.lost = true
		host := new(teatest.Host)
		if _, err := crawl(t, f, host); tea.AsError(err) == nil || tea.AsError(err).Type != tea.ConnectionError || started(f) != 1 {
			t.Fatalf("got %v, %d starts", err, started(f))
		}
		if result, err := crawl(t, f, host); err != nil || result["job_id"] != "job-1" {
			t.Errorf("got %v, %v", result["job_id"], err)
		}
		if len(f.jobs) != 1 {
			t.Errorf("%d jobs", len(f.jobs))
		}
	})
}

func toSettings(t *testing.T, values map[string]any) tea.Settings {
	t.Helper()
	settings := tea.Settings{}
	for key, v := range values {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		settings[key] = raw
	}
	return settings
}

func TestFirecrawlCrawlIsCancelled(t *testing.T) {
	t.Parallel()
	f := startFirecrawl(t, "v2", -1)
	bundle := web.Bundle()
	instance, err := bundle.NewInstance(t.Context(), toSettings(t, f.settings()))
	if err != nil {
		t.Fatal(err)
	}
	defer instance.Close()
	ctx, cancel := context.WithCancel(t.Context())
	host := new(teatest.Host)
	ended := make(chan error, 1)
	go func() {
		_, err := instance.Invoke(ctx, &tea.Request{Action: "web.crawl", Params: tea.ValuePayload(map[string]any{"url": "https://a.test/"}), Call: tea.Call{Attempt: 1}, Host: host})
		ended <- err
	}()
	<-f.polled
	cancel()
	if err := <-ended; tea.AsError(err) == nil || tea.AsError(err).Type != tea.Canceled {
		t.Errorf("got %v", err)
	}
	select {
	case id := <-f.deleted:
		if id != "job-1" {
			t.Errorf("%s was cancelled", id)
		}
	case <-time.After(time.Minute):
		t.Error("the job was not cancelled")
	}
}

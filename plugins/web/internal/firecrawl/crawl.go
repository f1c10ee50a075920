package firecrawl

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/plugins/web/internal/page"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

const (
	// pollInterval is the time between two requests for the status of a job.
	pollInterval = 2 * time.Second
	// maxIdlePolls is the number of polls without a new page that end a job: 10 minutes.
	maxIdlePolls = 300
	// cancelTimeout is the time for cancelling a job after its call was cancelled.
	cancelTimeout = 1500 * time.Millisecond
	// maxCrawlBytes bounds the size of a crawl's result.
	maxCrawlBytes = 48 << 20
	// noteKey is the key of the note with the job.
	noteKey = "web.crawl/firecrawl"
)

// job is the note of a crawl: the job that was started for an address.
type job struct {
	ID  string `json:"id"`
	URL string `json:"url"`
}

// crawl is one call of web.crawl.
type crawl struct {
	client *Client
	server *httpapi.Server
	req    *tea.Request
	params page.CrawlParams
	url    string
	result page.CrawlResult
}

// Crawl reads the pages of a site. It continues a job from an interrupted attempt of
// the same call. If the call is cancelled, it cancels the job.
func (c *Client) Crawl(ctx context.Context, req *tea.Request, p page.CrawlParams) (*page.CrawlResult, error) {
	address, err := c.checkURL(p.URL)
	if err != nil {
		return nil, err
	}
	if err := p.Check(true); err != nil {
		return nil, err
	}
	server, err := c.server(req)
	if err != nil {
		return nil, err
	}
	x := &crawl{client: c, server: server, req: req, params: p, url: address}
	x.result = page.CrawlResult{Success: true, Pages: []*page.Page{}}
	j, resumed, err := x.find(ctx)
	if err != nil {
		return nil, err
	}
	status, err := x.await(ctx, j)
	if resumed && j.ID != p.JobID && err != nil && ctx.Err() == nil && isGone(err) {
		// The job was cancelled, or its pages have expired.
		if j, err = x.start(ctx); err != nil {
			return nil, err
		}
		status, err = x.await(ctx, j)
	}
	if err != nil {
		if ctx.Err() != nil {
			x.cancel(ctx, j)
		}
		return nil, err
	}
	if err := x.collect(ctx, j, status); err != nil {
		return nil, err
	}
	x.result.JobID, x.result.TotalPages = j.ID, len(x.result.Pages)
	return &x.result, nil
}

// find returns the job of an earlier attempt or of another run, or starts one.
func (x *crawl) find(ctx context.Context) (j job, resumed bool, err error) {
	note, found, err := x.req.Host.Note(ctx, noteKey)
	if err != nil {
		return j, false, err
	}
	if found {
		if err := note.Decode(&j); err != nil {
			return j, false, tea.Errorf(tea.InternalError, "read the note %s: %w", noteKey, err)
		}
		if j.ID != "" && j.URL == x.url {
			x.req.Host.Log(ctx, slog.LevelInfo, "continuing the crawl of an earlier attempt", map[string]any{"job_id": j.ID})
			return j, true, nil
		}
	}
	if x.params.JobID != "" {
		j = job{ID: x.params.JobID, URL: x.url}
		return j, true, x.req.Host.SetNote(ctx, noteKey, j)
	}
	j, err = x.start(ctx)
	return j, false, err
}

// start starts a job and stores its identifier. The server starts one job per
// idempotency key; its answer to a second request does not name the job, which is then
// searched among the active ones.
func (x *crawl) start(ctx context.Context) (job, error) {
	limited, cancel := x.client.service.Expire(ctx, 0)
	defer cancel()
	header := http.Header{}
	if x.req.IdempotencyKey != "" {
		header.Set("X-Idempotency-Key", toUUID(x.req.IdempotencyKey))
	}
	id, err := x.post(limited, header)
	if e := tea.AsError(err); e != nil && e.Details["status"] == int64(http.StatusConflict) && len(header) > 0 {
		if id, err = x.active(limited); err == nil && id == "" {
			id, err = x.post(limited, nil) // the earlier job has ended
		}
	}
	if err != nil {
		return job{}, err
	}
	j := job{ID: id, URL: x.url}
	x.req.Host.Log(ctx, slog.LevelInfo, "the crawl can be continued in another run", map[string]any{"job_id": id})
	return j, x.req.Host.SetNote(ctx, noteKey, j)
}

func (x *crawl) post(ctx context.Context, header http.Header) (id string, err error) {
	var answer struct {
		envelope
		ID string `json:"id"`
	}
	r := httpapi.Request{Path: x.client.version + "/crawl", Header: header, Body: x.body(), Unsafe: true}
	if err := x.client.send(ctx, x.server, r, &answer, &answer.envelope); err != nil {
		return "", err
	}
	if answer.ID == "" {
		return "", tea.Errorf(tea.ConnectionError, "firecrawl started no job")
	}
	return answer.ID, nil
}

// active returns the active job for the address; "" if there is none.
func (x *crawl) active(ctx context.Context) (id string, err error) {
	var answer struct {
		envelope
		Crawls []struct {
			ID  string `json:"id"`
			URL string `json:"url"`
		} `json:"crawls"`
	}
	r := httpapi.Request{Method: http.MethodGet, Path: x.client.version + "/crawl/active"}
	if err := x.client.send(ctx, x.server, r, &answer, &answer.envelope); err != nil {
		return "", err
	}
	for _, c := range answer.Crawls {
		if c.URL == x.url {
			return c.ID, nil
		}
	}
	return "", nil
}

// body returns the request for a job.
func (x *crawl) body() map[string]any {
	p := x.params
	options := x.client.options(p.ReadOptions)
	body := map[string]any{
		"url": x.url, "scrapeOptions": options, "crawlEntireDomain": true,
		"allowExternalLinks": p.SameHost != nil && !*p.SameHost,
	}
	if p.Limit > 0 {
		body["limit"] = p.Limit
	}
	if p.MaxDepth != nil {
		body["maxDiscoveryDepth"] = *p.MaxDepth
	}
	if p.Delay != nil && *p.Delay > 0 {
		body["delay"] = *p.Delay
	}
	isAddress := func(pattern string) bool { return strings.HasPrefix(pattern, "http") }
	whole := slices.ContainsFunc(p.Include, isAddress) || slices.ContainsFunc(p.Exclude, isAddress)
	if whole {
		body["regexOnFullURL"] = true
	}
	if len(p.Include) > 0 {
		body["includePaths"] = toExpressions(p.Include, whole)
	}
	if len(p.Exclude) > 0 {
		body["excludePaths"] = toExpressions(p.Exclude, whole)
	}
	return body
}

// toExpressions converts patterns to regular expressions of paths, or of whole
// addresses.
func toExpressions(patterns []string, whole bool) []string {
	var list []string
	for _, pattern := range patterns {
		body, end := strings.CutSuffix(pattern, "$")
		begin := "^"
		if whole && !strings.HasPrefix(pattern, "http") {
			begin = "^https?://[^/]+"
		}
		expression := begin + strings.ReplaceAll(regexp.QuoteMeta(body), `\*`, ".*")
		if end {
			expression += "$"
		}
		list = append(list, expression)
	}
	return list
}

// status is the status of a job, and a part of its pages.
type status struct {
	envelope
	Status    string     `json:"status"`
	Total     int        `json:"total"`
	Completed int        `json:"completed"`
	Next      string     `json:"next"`
	Data      []document `json:"data"`
}

// isGone reports whether a job cannot be continued.
func isGone(err error) bool {
	e := tea.AsError(err)
	return e.Type == tea.NotFound || e.Details["job_status"] != nil
}

// await waits until a job has ended.
func (x *crawl) await(ctx context.Context, j job) (*status, error) {
	idle, best := 0, -1
	for {
		s, err := x.status(ctx, x.client.version+"/crawl/"+url.PathEscape(j.ID), nil)
		if err != nil {
			return nil, err
		}
		switch s.Status {
		case "completed":
			return s, nil
		case "failed", "cancelled":
			e := tea.Errorf(tea.ConnectionError, "the crawl %s at firecrawl has the status %s after %d pages", j.ID, s.Status, s.Completed)
			if s.Error != "" {
				e.Message += ": " + s.Error
			}
			e.Details = map[string]any{"job_id": j.ID, "job_status": s.Status}
			return nil, e
		}
		// A falling number, or one above the limit, is not progress.
		idle++
		if completed := min(s.Completed, max(x.params.Limit, 1)); completed > best {
			idle, best = 0, completed
		}
		if idle >= maxIdlePolls {
			x.cancel(ctx, j)
			return nil, tea.Errorf(tea.Timeout, "the crawl %s at firecrawl read no page for %s; it was cancelled", j.ID, maxIdlePolls*pollInterval)
		}
		x.req.Host.Progress(ctx, float64(s.Completed)/float64(max(s.Total, s.Completed, 1)), fmt.Sprintf("%d of %d pages", s.Completed, s.Total))
		if err := backoff.Sleep(ctx, x.client.poll); err != nil {
			return nil, tea.AsError(err)
		}
	}
}

func (x *crawl) status(ctx context.Context, path string, query url.Values) (*status, error) {
	ctx, cancel := x.client.service.Expire(ctx, 0)
	defer cancel()
	s := new(status)
	err := x.server.Do(ctx, httpapi.Request{Method: http.MethodGet, Path: path, Query: query}, func(reply httpapi.Reply) error {
		return reply.Decode(s, "the status of a crawl")
	})
	if err == nil && s.Status == "" && len(s.Data) == 0 {
		if err = s.failure(); err == nil {
			err = tea.Errorf(tea.ConnectionError, "firecrawl sent neither the status of the crawl nor pages")
		}
	}
	return s, err
}

// cancel cancels a job, so that it does not continue to cost. The caller's context may
// have ended.
func (x *crawl) cancel(ctx context.Context, j job) {
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer end()
	once := *x.server
	once.MaxRetries = 0
	r := httpapi.Request{Method: http.MethodDelete, Path: x.client.version + "/crawl/" + url.PathEscape(j.ID)}
	if err := once.Do(ctx, r, func(httpapi.Reply) error { return nil }); err != nil {
		x.req.Host.Log(ctx, slog.LevelWarn, "the crawl at firecrawl was not cancelled", map[string]any{"job_id": j.ID, "error": err.Error()})
		return
	}
	_ = x.req.Host.SetNote(ctx, noteKey, job{}) // without it, the job is found to be cancelled later
}

// collect reads the pages of a job.
func (x *crawl) collect(ctx context.Context, j job, s *status) error {
	size := 0
	for seen := map[string]bool{}; ; {
		if s.Warning != "" {
			x.result.Notes = append(x.result.Notes, s.Warning)
		}
		for i := range s.Data {
			d := &s.Data[i]
			if len(x.result.Pages)+len(x.result.Failed) >= x.params.Limit {
				return x.errors(ctx, j)
			}
			if size += len(d.Markdown) + len(d.HTML) + len(d.Screenshot); size > maxCrawlBytes {
				x.result.Notes = append(x.result.Notes, fmt.Sprintf("the pages have more than %d MiB; the rest is left out", maxCrawlBytes>>20))
				return x.errors(ctx, j)
			}
			if err := x.add(ctx, d); err != nil {
				return err
			}
		}
		if s.Next == "" || seen[s.Next] || len(s.Data) == 0 {
			break
		}
		seen[s.Next] = true
		path, query, err := x.nextPath(s.Next)
		if err != nil {
			return err
		}
		if s, err = x.status(ctx, path, query); err != nil {
			return err
		}
	}
	return x.errors(ctx, j)
}

// add adds a page or its failure.
func (x *crawl) add(ctx context.Context, d *document) error {
	address := string(d.Metadata.SourceURL)
	if err := d.failure(address); err != nil {
		e := tea.AsError(err)
		x.result.Failed = append(x.result.Failed, page.FailedPage{URL: address, Error: e.Message, Type: e.Type})
		return nil
	}
	p, err := x.client.toPage(ctx, d, address, x.params.ReadOptions)
	if err != nil {
		return err
	}
	x.result.Pages = append(x.result.Pages, p)
	return nil
}

// nextPath returns the path and query of the next part. It ignores the host: the key is
// sent only to the server of the settings.
func (x *crawl) nextPath(next string) (string, url.Values, error) {
	u, err := url.Parse(next)
	if err == nil {
		if _, path, found := strings.Cut(u.EscapedPath(), "/"+x.client.version+"/"); found {
			return x.client.version + "/" + path, u.Query(), nil
		}
	}
	return "", nil, tea.Errorf(tea.ConnectionError, "firecrawl names %q as the next part of the crawl, which is not an address of its API", next)
}

// errors adds the pages that the server could not read. Not every server provides the
// list.
func (x *crawl) errors(ctx context.Context, j job) error {
	var answer struct {
		envelope
		Errors []struct {
			URL   string `json:"url"`
			Error string `json:"error"`
		} `json:"errors"`
		Blocked []string `json:"robotsBlocked"`
	}
	ctx, cancel := x.client.service.Expire(ctx, 0)
	defer cancel()
	r := httpapi.Request{Method: http.MethodGet, Path: x.client.version + "/crawl/" + url.PathEscape(j.ID) + "/errors"}
	err := x.client.send(ctx, x.server, r, &answer, &answer.envelope)
	if e := tea.AsError(err); e != nil {
		if e.Type == tea.Canceled {
			return err
		}
		if e.Type != tea.NotFound {
			x.result.Notes = append(x.result.Notes, "the pages that could not be read are not known: "+e.Message)
		}
		return nil
	}
	for _, f := range answer.Errors {
		x.result.Failed = append(x.result.Failed, page.FailedPage{URL: f.URL, Error: f.Error, Type: tea.ConnectionError})
	}
	if len(answer.Blocked) > 0 {
		x.result.Skipped = map[string]int{"robots": len(answer.Blocked)}
	}
	return nil
}

// toUUID derives the key in the form that the server requires.
func toUUID(key string) string {
	sum := sha256.Sum256([]byte(key))
	sum[6], sum[8] = sum[6]&0x0f|0x40, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

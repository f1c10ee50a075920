package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/the-edge-agent/tea/plugins/web/internal/page"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
	"github.com/the-edge-agent/tea/sdk/x/safenet"
)

const (
	// maxCrawlBytes bounds the size of a crawl's result, below tea.MaxPayload.
	maxCrawlBytes = 48 << 20
	// maxFailures is the number of failures in a row that ends a crawl.
	maxFailures = 20
	// pageRetries is the number of retries after a temporary failure, and maxRetryWait
	// the longest wait between them.
	pageRetries  = 2
	maxRetryWait = 30 * time.Second
)

var retryWait = backoff.Policy{Base: time.Second, Max: maxRetryWait, Multiplier: 2, Jitter: 0.5}

// crawl is one call of web.crawl.
type crawl struct {
	r         *Reader
	req       *tea.Request
	p         page.CrawlParams
	frontier  *frontier
	robots    map[string]*robots // by scheme and host
	rulesRead int                // the number for all hosts
	bodies    map[string]bool    // digests of page contents
	result    *page.CrawlResult
	bytes     int
	failures  int // without a page since
	steps     int // steps that are stored as notes
	job       *job
}

// step is the outcome of one address. The steps of a crawl are stored as notes, each
// once: a repeated call applies them again and continues after the last one.
type step struct {
	Page    *page.Page       `json:"page,omitempty"`
	Failed  *page.FailedPage `json:"failed,omitempty"`
	Digest  string           `json:"digest,omitempty"`
	Found   []target         `json:"found,omitempty"`
	Skipped map[string]int   `json:"skipped,omitempty"`
	Notes   []string         `json:"notes,omitempty"`
}

// skipError is the reason why an admitted address is not read, such as a redirect to
// another host.
type skipError struct{ reason string }

func (e *skipError) Error() string { return "skipped: " + e.reason }

// Crawl reads the pages of a site in the order in which they are found. It is an error
// if the first page cannot be read; other failures are listed in the result.
func (r *Reader) Crawl(ctx context.Context, req *tea.Request, p page.CrawlParams) (*page.CrawlResult, error) {
	start, err := safenet.ParseURL(p.URL)
	if err != nil {
		return nil, err
	}
	if err := p.Check(false); err != nil {
		return nil, err
	}
	c := &crawl{r: r, req: req, p: p, robots: map[string]*robots{}, bodies: map[string]bool{}}
	if c.frontier, err = newFrontier(p); err != nil {
		return nil, err
	}
	c.result = &page.CrawlResult{Success: true, Pages: []*page.Page{}, JobID: jobID(req, p), Skipped: map[string]int{}}
	c.frontier.seen[key(start)] = true
	c.frontier.queue = []target{{URL: start.String()}}
	c.job = r.cache.newJob(c.result.JobID, start.String(), p.JobID)
	defer c.job.close()
	if c.job != nil {
		req.Host.Log(ctx, slog.LevelInfo, "the crawl can be continued in another run", map[string]any{"job_id": c.result.JobID})
	}
	if err := c.resume(ctx, start); err != nil {
		return nil, err
	}
	for len(c.frontier.queue) > 0 {
		if len(c.result.Pages) >= c.limit() {
			c.result.Skipped[skipLimit] += len(c.frontier.queue)
			c.note("the limit of %d pages is reached; %d addresses were not read", c.limit(), len(c.frontier.queue))
			break
		}
		if c.bytes > maxCrawlBytes {
			c.note("the pages have more than %d MiB; %d addresses were not read", maxCrawlBytes>>20, len(c.frontier.queue))
			break
		}
		if c.failures >= maxFailures {
			c.note("%d pages in a row could not be read; %d addresses were not read", c.failures, len(c.frontier.queue))
			break
		}
		if err := c.next(ctx); err != nil {
			return nil, err
		}
	}
	c.result.TotalPages = len(c.result.Pages)
	return c.result, nil
}

func (c *crawl) limit() int {
	if c.p.Limit == 0 {
		return 100
	}
	return c.p.Limit
}

func (c *crawl) note(format string, args ...any) {
	c.result.Notes = append(c.result.Notes, fmt.Sprintf(format, args...))
}

// jobID identifies a crawl. A repeated call has the same identifier.
func jobID(req *tea.Request, p page.CrawlParams) string {
	params, _ := json.Marshal(p) // has only plain values
	sum := sha256.Sum256(append([]byte(req.IdempotencyKey+"\n"), params...))
	return hex.EncodeToString(sum[:8])
}

func (c *crawl) noteKey(i int) string { return fmt.Sprintf("web.crawl/%s/%d", c.result.JobID, i) }

// resume applies the steps of an earlier attempt, and of the job of another run.
func (c *crawl) resume(ctx context.Context, start *url.URL) error {
	for {
		note, found, err := c.req.Host.Note(ctx, c.noteKey(c.steps))
		if err != nil {
			return err
		}
		if !found {
			return c.takeOver(ctx, start)
		}
		var s step
		if err := note.Decode(&s); err != nil {
			return tea.Errorf(tea.InternalError, "read the crawl's notes: %w", err)
		}
		c.restore(&s)
	}
}

// restore applies an earlier step.
func (c *crawl) restore(s *step) {
	for _, t := range s.Found {
		if u, err := safenet.ParseURL(t.URL); err == nil {
			c.frontier.remember(u)
		}
	}
	c.apply(s)
}

// takeOver applies the steps of the job that the call names, once: they are stored as
// notes of this crawl, and the job may continue elsewhere.
func (c *crawl) takeOver(ctx context.Context, start *url.URL) error {
	if c.p.JobID == "" {
		return nil
	}
	done := fmt.Sprintf("web.crawl/%s/job", c.result.JobID)
	if _, found, err := c.req.Host.Note(ctx, done); err != nil || found {
		return err
	}
	err := c.r.cache.readJob(c.p.JobID, start.String(), c.steps, func(s *step) error {
		if len(c.frontier.queue) == 0 || len(c.result.Pages) >= c.limit() {
			return nil
		}
		if err := c.req.Host.SetNote(ctx, c.noteKey(c.steps), s); err != nil {
			return err
		}
		c.restore(s)
		return nil
	})
	if err != nil {
		return err
	}
	c.failures = 0 // the site may be back
	c.req.Host.Log(ctx, slog.LevelInfo, "continuing the crawl of another run", map[string]any{"job_id": c.p.JobID, "pages": len(c.result.Pages)})
	return c.req.Host.SetNote(ctx, done, c.p.JobID)
}

// next reads the next page, and the sitemap after the first one.
func (c *crawl) next(ctx context.Context) error {
	s, err := c.read(ctx, c.frontier.queue[0])
	if err != nil {
		return err
	}
	if c.steps == 0 && s.Failed == nil && c.frontier.maxDepth > 0 && c.limit() > 1 {
		c.addSitemap(ctx, s)
	}
	if err := c.req.Host.SetNote(ctx, c.noteKey(c.steps), s); err != nil {
		return err
	}
	c.apply(s)
	fraction := min(1, float64(len(c.result.Pages))/float64(min(c.limit(), len(c.result.Pages)+len(c.frontier.queue))))
	c.req.Host.Progress(ctx, fraction, fmt.Sprintf("%d pages read, %d found", len(c.result.Pages), len(c.frontier.queue)))
	return nil
}

// apply adds a step to the result.
func (c *crawl) apply(s *step) {
	c.steps++
	c.job.add(s)
	c.frontier.queue = c.frontier.queue[1:]
	if s.Page != nil {
		c.addPage(s)
	}
	if s.Failed != nil {
		c.result.Failed = append(c.result.Failed, *s.Failed)
		c.failures++
	}
	c.frontier.queue = append(c.frontier.queue, s.Found...)
	for reason, n := range s.Skipped {
		c.result.Skipped[reason] += n
	}
	c.result.Notes = append(c.result.Notes, s.Notes...)
}

func (c *crawl) addPage(s *step) {
	c.failures = 0
	c.bodies[s.Digest] = true
	encoded, _ := json.Marshal(s.Page) // has only plain values
	c.bytes += len(encoded)
	c.result.Pages = append(c.result.Pages, s.Page)
	if u, err := safenet.ParseURL(s.Page.URL); err == nil {
		c.frontier.seen[key(u)] = true
		if len(c.result.Pages) == 1 && or(c.p.SameHost, true) {
			c.frontier.host = u.Host // the first page may redirect, for example to www
		}
	}
}

// read reads a page. It returns an error if the first page cannot be read, or if the
// call has ended.
func (c *crawl) read(ctx context.Context, t target) (*step, error) {
	u, err := safenet.ParseURL(t.URL)
	if err != nil {
		return nil, err
	}
	retries := pageRetries
	if c.req.Attempt > 1 {
		retries = 0 // the host repeats the call
	}
	for attempt := 1; ; attempt++ {
		s, err := c.readOnce(ctx, u, t.Depth)
		if err == nil {
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var skip *skipError
		if errors.As(err, &skip) {
			if c.steps == 0 {
				return nil, c.refusal(u, skip)
			}
			return &step{Skipped: map[string]int{skip.reason: 1}}, nil
		}
		e := tea.AsError(err)
		if e.Retryable && attempt <= retries && e.RetryAfter <= maxRetryWait {
			if err := backoff.Sleep(ctx, max(e.RetryAfter, retryWait.Wait(attempt))); err != nil {
				return nil, err
			}
			continue
		}
		if c.steps == 0 {
			return nil, e
		}
		return &step{Failed: &page.FailedPage{URL: u.String(), Error: e.Message, Type: e.Type}}, nil
	}
}

// refusal is the error for a first page that must not be read.
func (c *crawl) refusal(u *url.URL, skip *skipError) *tea.Error {
	if rules := c.robots[origin(u)]; skip.reason == skipRobots && rules != nil && rules.refusal != "" {
		e := failure(tea.ConnectionError, u, "robots.txt cannot be read, so nothing can be crawled: %s", rules.refusal)
		e.Retryable = true
		return e
	}
	return failure(tea.PermissionDenied, u, "robots.txt does not allow crawling this page")
}

// readOnce makes one attempt to read a page.
func (c *crawl) readOnce(ctx context.Context, u *url.URL, depth int) (*step, error) {
	rules, err := c.rules(ctx, u)
	if err != nil {
		return nil, err
	}
	isFirst := c.steps == 0
	visit := func(ctx context.Context, hop *url.URL) error {
		if !isFirst && key(hop) != key(u) {
			if c.frontier.seen[key(hop)] {
				return &skipError{skipDuplicate}
			}
			if reason := c.frontier.refuse(hop); reason != "" {
				return &skipError{reason}
			}
		}
		rules, err := c.rules(ctx, hop)
		if err == nil && !rules.allows(hop) {
			err = &skipError{skipRobots}
		}
		return err
	}
	// The wait may be long and does not count towards the page's time limit.
	if err := c.r.pace.wait(ctx, u.Host, c.delay(rules)); err != nil {
		return nil, err
	}
	result, doc, err := c.r.read(ctx, u, c.p.ReadOptions, fetchOptions{delay: c.delay(rules), limit: c.r.maxBody, paced: true, visit: visit})
	if err != nil {
		return nil, err
	}
	s := &step{Page: result, Digest: digest(result), Skipped: map[string]int{}}
	if c.bodies[s.Digest] {
		return nil, &skipError{skipDuplicate}
	}
	if isFirst && or(c.p.SameHost, true) {
		c.frontier.host = doc.URL.Host
	}
	c.frontier.seen[key(doc.URL)] = true
	links := doc.Links()
	if doc.NoFollow {
		if len(links) > 0 {
			s.Skipped[skipNoFollow] = len(links)
		}
		return s, nil
	}
	for _, link := range links {
		if ctx.Err() != nil { // a host may have many rules
			return nil, context.Cause(ctx)
		}
		c.add(s, link.URL, depth+1)
	}
	return s, nil
}

// digest identifies the content of a page.
func digest(p *page.Page) string {
	sum := sha256.Sum256([]byte(p.Metadata.Title + "\n" + p.Markdown + "\n" + p.Text + "\n" + p.HTML))
	if p.Markdown == "" && p.Text == "" && p.HTML == "" {
		sum = sha256.Sum256([]byte(p.URL))
	}
	return hex.EncodeToString(sum[:12])
}

// add decides on a link and adds it to a step.
func (c *crawl) add(s *step, link string, depth int) {
	u, reason := c.frontier.admit(link, depth)
	if rules := c.robotsOf(u); reason == "" && rules != nil && !rules.allows(u) {
		reason = skipRobots
	}
	switch {
	case reason != "":
		s.Skipped[reason]++
	case u != nil:
		c.frontier.remember(u)
		s.Found = append(s.Found, target{URL: u.String(), Depth: depth})
	}
}

// addSitemap adds the addresses of the sitemap to the step of the first page.
func (c *crawl) addSitemap(ctx context.Context, s *step) {
	start, err := safenet.ParseURL(s.Page.URL)
	if err != nil {
		return
	}
	rules, err := c.rules(ctx, start)
	if err != nil {
		return
	}
	if rules.crawlDelay > maxCrawlDelay {
		s.Notes = append(s.Notes, fmt.Sprintf("robots.txt asks for a delay of %s; the delay is %s", rules.crawlDelay, maxCrawlDelay))
	}
	notes := c.readSitemaps(ctx, start, rules, func(link string) { c.add(s, link, 1) })
	s.Notes = append(s.Notes, notes...)
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// rules returns the rules of an address's host.
func (c *crawl) rules(ctx context.Context, u *url.URL) (*robots, error) {
	if rules := c.robots[origin(u)]; rules != nil {
		return rules, nil
	}
	if len(c.robots) >= maxRobotsHosts || c.rulesRead >= maxRobotsRules {
		return nil, &skipError{skipFull}
	}
	rules, err := c.r.readRobots(ctx, u)
	if err != nil {
		return nil, err
	}
	c.robots[origin(u)] = rules
	c.rulesRead += len(rules.rules) + len(rules.plain)
	return rules, nil
}

// robotsOf returns the rules of an address's host if they were read.
func (c *crawl) robotsOf(u *url.URL) *robots {
	if u == nil {
		return nil
	}
	return c.robots[origin(u)]
}

// delay is the time between two requests to a host.
func (c *crawl) delay(rules *robots) time.Duration {
	own := c.r.hostDelay
	if c.p.Delay != nil {
		own = seconds(*c.p.Delay)
	}
	return max(own, rules.delay())
}

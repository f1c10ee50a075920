package trace

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/backoff"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

const (
	// mostWaiting and mostBytes bound the spans in memory while a collector is slow.
	mostWaiting = 4096
	mostBytes   = 8 << 20
	// mostInBatch bounds one request.
	mostInBatch = 512
	// batchWait bounds the time for which the first span of a request waits for others.
	batchWait = time.Second
	// sendTimeout bounds one attempt.
	sendTimeout = 10 * time.Second
	// mostTries is the maximum number of attempts to send a request.
	mostTries = 4
)

// tryAgain is the policy for the waits between attempts.
var tryAgain = backoff.Policy{Base: time.Second, Max: time.Minute, Multiplier: 2}

// CollectorOptions describe a collector. The zero value is a collector at
// http://localhost:4318.
type CollectorOptions struct {
	// Endpoint is the collector's address; "" is http://localhost:4318. The
	// paths v1/traces and v1/metrics are added.
	Endpoint string
	// Headers are sent with each request.
	Headers map[string]string
	// Version is the program's version. Instance distinguishes the program from
	// others of the same service; "" if it has no metrics.
	Version, Instance string
	// Logger reports lost spans; nil discards the reports.
	Logger *slog.Logger
}

// Collector sends spans and metrics over OTLP/HTTP. Spans are sent from a separate
// goroutine, so that runs do not wait for the network. Tracers can share a collector.
// It is safe for concurrent use. The caller closes it after its tracers.
type Collector struct {
	base     *url.URL
	url      string // base for messages
	headers  map[string]string
	resource otlpResource
	log      *slog.Logger
	client   *http.Client

	queue chan *span
	// bytes is the approximate size of the spans in the queue.
	bytes atomic.Int64
	// closing is closed by Close, done when the goroutine has ended.
	closing chan struct{}
	done    chan struct{}
	stop    context.CancelFunc
	dropped atomic.Int64
	// failing is set after a request that was not accepted. Only the goroutine uses
	// it.
	failing bool
}

// NewCollector returns a collector. The error reports that the endpoint is not valid.
func NewCollector(o CollectorOptions) (*Collector, error) {
	base, err := baseURL(o.Endpoint)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &Collector{
		base: base, url: plainURL(base), headers: o.Headers, resource: resourceOf(o.Version, o.Instance), log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		// Redirects are not followed: they could send the headers, which may contain
		// a key, to another host.
		client: &http.Client{
			Transport: httpapi.Once{Transport: http.DefaultTransport.(*http.Transport)}, Timeout: sendTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		queue: make(chan *span, mostWaiting), closing: make(chan struct{}), done: make(chan struct{}), stop: stop,
	}
	go c.run(ctx)
	return c, nil
}

func (c *Collector) export(s *span) {
	size := s.size()
	if c.bytes.Add(size) > mostBytes {
		c.bytes.Add(-size)
		c.dropped.Add(1)
		return
	}
	select {
	case c.queue <- s:
	default:
		c.bytes.Add(-size)
		c.dropped.Add(1)
	}
}

// Close sends the remaining spans. The error reports spans that are lost because ctx ended.
func (c *Collector) Close(ctx context.Context) error {
	close(c.closing)
	select {
	case <-c.done:
	case <-ctx.Done():
		c.stop()
		<-c.done
	}
	c.stop()
	c.client.CloseIdleConnections()
	if n := c.dropped.Load(); n > 0 {
		return fmt.Errorf("%d spans did not reach the collector %s", n, c.url)
	}
	return nil
}

func (c *Collector) close(ctx context.Context) error { return c.Close(ctx) }

// shared is a collector that the tracer does not close.
type shared struct{ *Collector }

func (shared) close(context.Context) error { return nil }

func (c *Collector) run(ctx context.Context) {
	defer close(c.done)
	for {
		first := c.next(nil)
		if first == nil {
			return
		}
		c.sendSpans(ctx, c.batch(first))
	}
}

// batch collects the spans of one request.
func (c *Collector) batch(first *span) []*span {
	batch := []*span{first}
	full := time.NewTimer(batchWait)
	defer full.Stop()
	for len(batch) < mostInBatch {
		s := c.next(full.C)
		if s == nil {
			break
		}
		batch = append(batch, s)
	}
	return batch
}

// next waits for a span until over fires. It returns nil if there is none, or if the
// collector is closing and has no more spans.
func (c *Collector) next(over <-chan time.Time) (s *span) {
	select {
	case s = <-c.queue:
	default:
		select {
		case s = <-c.queue:
		case <-c.closing:
			select {
			case s = <-c.queue:
			default:
			}
		case <-over:
		}
	}
	if s != nil {
		c.bytes.Add(-s.size())
	}
	return s
}

func (c *Collector) sendSpans(ctx context.Context, batch []*span) {
	body, err := encode(c.resource, batch...)
	if err == nil {
		err = c.send(ctx, "traces", body, mostTries)
	}
	switch {
	case err != nil:
		c.dropped.Add(int64(len(batch)))
		if !c.failing { // one line for an outage
			c.log.Warn("spans did not reach the collector", "url", c.url, "spans", len(batch), "error", err)
		}
	case c.failing:
		c.log.Warn("the collector accepts spans again", "url", c.url, "lost", c.dropped.Load())
	}
	c.failing = err != nil
}

// send sends a request, and retries if the collector asks for it or cannot be reached.
func (c *Collector) send(ctx context.Context, signal string, body []byte, tries int) error {
	for try := 1; ; try++ {
		wait, again, err := c.post(ctx, signal, body)
		if err == nil || !again || try == tries {
			return err
		}
		if wait < 0 {
			wait = tryAgain.Wait(try)
		}
		if err := backoff.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// post makes one attempt. again reports whether another one may succeed, after wait if
// that is not negative.
func (c *Collector) post(ctx context.Context, signal string, body []byte) (wait time.Duration, again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base.JoinPath("v1", signal).String(), bytes.NewReader(body))
	if err != nil {
		return 0, false, fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	for name, v := range c.headers {
		req.Header.Set(name, v)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return -1, true, fmt.Errorf("send %s: %w", signal, withoutURL(err))
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // for messages only
	switch resp.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent: // the protocol specifies only the first, servers return all three
		c.rejected(answer)
		return 0, false, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return retryAfter(resp.Header), true, fmt.Errorf("the collector answers %s", resp.Status)
	}
	return 0, false, fmt.Errorf("the collector answers %s: %s", resp.Status, clip(string(answer)))
}

// rejected logs the spans that a collector rejected in an accepted request.
func (c *Collector) rejected(answer []byte) {
	var partial struct {
		PartialSuccess struct {
			RejectedSpans  json.Number `json:"rejectedSpans"`
			RejectedPoints json.Number `json:"rejectedDataPoints"`
			ErrorMessage   string      `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &partial) != nil {
		return
	}
	if n, _ := partial.PartialSuccess.RejectedSpans.Int64(); n > 0 {
		c.log.Warn("the collector rejects spans", "spans", n, "error", partial.PartialSuccess.ErrorMessage)
	}
	if n, _ := partial.PartialSuccess.RejectedPoints.Int64(); n > 0 {
		c.log.Warn("the collector rejects metrics", "points", n, "error", partial.PartialSuccess.ErrorMessage)
	}
}

// retryAfter returns the wait that a server asks for, -1 if it does not.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return -1
	}
	return min(time.Duration(seconds)*time.Second, time.Minute)
}

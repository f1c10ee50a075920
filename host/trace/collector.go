package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/backoff"
)

const (
	// mostWaiting bounds the spans in memory while a collector is slow.
	mostWaiting = 4096
	// mostInBatch bounds one request.
	mostInBatch = 512
	// batchWait is how long the first span of a request waits for others.
	batchWait = time.Second
	// sendTimeout bounds one try.
	sendTimeout = 10 * time.Second
	// mostTries is how often a request is sent.
	mostTries = 4
)

// tryAgain are the waits between these tries.
var tryAgain = backoff.Policy{Base: time.Second, Max: time.Minute, Multiplier: 2}

// collector sends spans over OTLP/HTTP from a separate goroutine, so that
// no run waits for the network.
type collector struct {
	url      string
	headers  map[string]string
	resource otlpResource
	log      *slog.Logger
	client   *http.Client

	queue   chan *span
	done    chan struct{}
	stop    context.CancelFunc
	dropped atomic.Int64
}

func newCollector(url string, headers map[string]string, resource otlpResource, log *slog.Logger) *collector {
	ctx, stop := context.WithCancel(context.Background())
	c := &collector{
		url: url, headers: headers, resource: resource, log: log,
		// A redirect is not followed: it would carry the headers, which may
		// hold a key, to wherever it leads.
		client: &http.Client{Timeout: sendTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		queue:  make(chan *span, mostWaiting), done: make(chan struct{}), stop: stop,
	}
	go c.run(ctx)
	return c
}

func (c *collector) export(s *span) {
	select {
	case c.queue <- s:
	default:
		c.dropped.Add(1)
	}
}

// close sends what waits; what is left when ctx ends is lost, which is the
// error.
func (c *collector) close(ctx context.Context) error {
	close(c.queue)
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

func (c *collector) run(ctx context.Context) {
	defer close(c.done)
	for {
		first, open := <-c.queue
		if !open {
			return
		}
		c.send(ctx, c.batch(first))
	}
}

// batch collects the spans of one request.
func (c *collector) batch(first *span) []*span {
	batch := []*span{first}
	full := time.NewTimer(batchWait)
	defer full.Stop()
	for len(batch) < mostInBatch {
		select {
		case s, open := <-c.queue:
			if !open {
				return batch
			}
			batch = append(batch, s)
		case <-full.C:
			return batch
		}
	}
	return batch
}

func (c *collector) send(ctx context.Context, batch []*span) {
	body, err := encode(c.resource, batch...)
	for try := 1; err == nil; try++ {
		var wait time.Duration
		var again bool
		if wait, again, err = c.post(ctx, body); err == nil {
			return
		}
		if !again || try == mostTries {
			break
		}
		if wait < 0 {
			wait = tryAgain.Wait(try)
		}
		if err = backoff.Sleep(ctx, wait); err != nil {
			break
		}
	}
	c.dropped.Add(int64(len(batch)))
	c.log.Warn("spans did not reach the collector", "url", c.url, "spans", len(batch), "error", err)
}

// post makes one try. again says that another one may succeed, after wait
// where that is not negative.
func (c *collector) post(ctx context.Context, body []byte) (wait time.Duration, again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return 0, false, fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	for name, v := range c.headers {
		req.Header.Set(name, v)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return -1, true, fmt.Errorf("send spans: %w", err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // only informs
	switch resp.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent: // the protocol has only the first, servers have all three
		c.rejected(answer)
		return 0, false, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return retryAfter(resp.Header), true, fmt.Errorf("the collector answers %s", resp.Status)
	}
	return 0, false, fmt.Errorf("the collector answers %s: %s", resp.Status, clip(string(answer)))
}

// rejected logs spans that a collector accepted and dropped.
func (c *collector) rejected(answer []byte) {
	var partial struct {
		PartialSuccess struct {
			RejectedSpans json.Number `json:"rejectedSpans"`
			ErrorMessage  string      `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &partial) != nil {
		return
	}
	if n, _ := partial.PartialSuccess.RejectedSpans.Int64(); n > 0 {
		c.log.Warn("the collector rejects spans", "spans", n, "error", partial.PartialSuccess.ErrorMessage)
	}
}

// retryAfter reads the seconds that a server asks for, -1 where it does not.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return -1
	}
	return min(time.Duration(seconds)*time.Second, time.Minute)
}

package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// MaxBody is the size up to which an answer that is not streamed is read.
const MaxBody = 64 << 20

// MaxStream is the size up to which a streamed answer is read. What carries a
// token is many times as long as the token.
const MaxStream = 4 * MaxBody

// Client sends requests. It is safe for concurrent use; its fields are set
// before the first one.
type Client struct {
	// HTTP must not follow redirects, see [NewHTTP].
	HTTP *http.Client
	// Sleep waits between two tries; it returns early when ctx is done. nil
	// sleeps for real.
	Sleep func(ctx context.Context, d time.Duration) error
}

// NewHTTP makes the HTTP client for a [Client]. It does not follow redirects,
// which would carry keys to wherever they lead. Its connections belong to
// it: close them with CloseIdleConnections.
func NewHTTP() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 16
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Call is one request.
type Call struct {
	// URL is where to send Body, a JSON text.
	URL    string
	Header http.Header
	Body   []byte
	// MaxRetries is how often to try again after the first try.
	MaxRetries int
	// Secrets are replaced by *** in errors.
	Secrets []string
	// OnRetry is told before each wait; may be nil.
	OnRetry func(Retry)
}

// Retry says that a try failed and that there will be another one.
type Retry struct {
	// Attempt counts the tries so far, from 1.
	Attempt int
	Wait    time.Duration
	Reason  *tea.Error
}

// Reply is the successful answer to one try.
type Reply struct {
	*http.Response
	cancel context.CancelCauseFunc
}

// Post sends the call and hands the answer of a successful try to consume,
// which reads the body but need not close it. Failures that may pass, also of
// consume, are tried again with growing waits, up to MaxRetries times; one
// marked by [Interrupted] is not. The error is always a *tea.Error.
func (c *Client) Post(ctx context.Context, call Call, consume func(Reply) error) error {
	for attempt := 1; ; attempt++ {
		failure, final := c.try(ctx, call, consume)
		if failure == nil {
			return nil
		}
		if final || !failure.Retryable || attempt > call.MaxRetries || ctx.Err() != nil {
			return failure
		}
		wait := backoff(attempt, failure)
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
			return failure
		}
		if call.OnRetry != nil {
			call.OnRetry(Retry{Attempt: attempt, Wait: wait, Reason: failure})
		}
		if err := c.sleep(ctx, wait); err != nil {
			return contextError(ctx)
		}
	}
}

// try makes one request. final says that there must be no further one.
func (c *Client) try(ctx context.Context, call Call, consume func(Reply) error) (failure *tea.Error, final bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := c.exchange(ctx, call, func(resp *http.Response) error {
		return consume(Reply{Response: resp, cancel: cancel})
	})
	if err == nil {
		return nil, false
	}
	return toFailure(ctx, call, err)
}

func (c *Client) exchange(ctx context.Context, call Call, consume func(*http.Response) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, call.URL, bytes.NewReader(call.Body))
	if err != nil {
		return tea.Errorf(tea.ValidationError, "api_base is not a URL")
	}
	for name, values := range call.Header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return consume(resp)
	}
	return statusError(resp)
}

func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	if c.Sleep != nil {
		return c.Sleep(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// ReadAll reads an answer that is not streamed.
func (r Reply) ReadAll() ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	if err != nil {
		return nil, err
	}
	if len(body) > MaxBody {
		return nil, tea.Errorf(tea.ValidationError, "the server's answer is larger than %d MiB", MaxBody>>20)
	}
	return body, nil
}

// Stream is the body of a streamed answer, which ends with an error beyond
// [MaxStream]: a server gone wild sends for as long as somebody reads.
func (r Reply) Stream() io.Reader { return &bounded{in: r.Body, left: MaxStream} }

type bounded struct {
	in   io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, tea.Errorf(tea.ValidationError, "the server's answer is larger than %d MiB", MaxStream>>20)
	}
	n, err := b.in.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// Delimited tells whether the end of the body can be told from a connection
// that broke: by a length, by chunks, or by the checksum of a compressed body.
func (r Reply) Delimited() bool {
	return r.ContentLength >= 0 || len(r.TransferEncoding) > 0 || r.ProtoMajor >= 2 || r.Uncompressed
}

// Interrupted marks an error of consume that came after pieces of the answer
// were given out: to try again would give them out twice. With no piece given
// out it is the error itself.
func Interrupted(err error, pieces int) error {
	if pieces == 0 {
		return err
	}
	return &interrupted{err: err, pieces: pieces}
}

type interrupted struct {
	err    error
	pieces int
}

func (i *interrupted) Error() string { return i.err.Error() }
func (i *interrupted) Unwrap() error { return i.err }

// toFailure words whatever went wrong in a try.
func toFailure(ctx context.Context, call Call, err error) (failure *tea.Error, final bool) {
	var known *tea.Error
	switch {
	case errors.As(err, &known):
		failure = known
	case ctx.Err() != nil:
		failure = contextError(ctx)
	default:
		failure = connectionError(err)
	}
	clean := *failure
	clean.Source = hostOf(call.URL)
	var broken *interrupted
	if errors.As(err, &broken) {
		final = true
		clean.Message = fmt.Sprintf("the answer broke off after %d tokens: %s", broken.pieces, clean.Message)
		clean.Details = maps.Clone(clean.Details)
		if clean.Details == nil {
			clean.Details = map[string]any{}
		}
		clean.Details["tokens"] = int64(broken.pieces)
	}
	redact(&clean, call.Secrets)
	clean.Message = shorten(clean.Message) // only now: half a secret would not be found
	return &clean, final
}

// Expire derives a context for one answer that ends after d with a timeout
// error; d <= 0 sets no limit.
func Expire(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, tea.Errorf(tea.Timeout, "the model gave no complete answer within %s (timeout_seconds)", d))
}

// contextError says why ctx ended: by a limit of ours, the caller's deadline,
// or cancellation.
func contextError(ctx context.Context) *tea.Error {
	return tea.AsError(context.Cause(ctx))
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

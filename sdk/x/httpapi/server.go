package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
)

// Server describes a server and how to send requests to it. It is safe for concurrent use;
// its fields are set before the first request.
type Server struct {
	// HTTP must not follow redirects; see [NewHTTP].
	HTTP *http.Client
	// Base is the base address of the protocol's paths. Its query, if any, is sent
	// with every request.
	Base   string
	Header http.Header
	// Secrets are replaced by *** in errors.
	Secrets []string
	// MaxRetries is the maximum number of attempts after the first one.
	MaxRetries int
	// RetryConflicts retries after the status 409, for services that document it as
	// transient, as model services do for requests in progress. For others it means that
	// the request contradicts the state of the server, and the error is final.
	RetryConflicts bool
	// MaxRetryAfter is the longest wait that the server may ask for.
	MaxRetryAfter time.Duration
	// TokenTimeout is the maximum pause between two tokens of a stream.
	TokenTimeout time.Duration
	// MaxAnswer is the maximum size of an answer in bytes; 0 means the
	// protocol's limit.
	MaxAnswer int
	// OnFailure receives each failed attempt; can be nil. An error from it ends
	// the request.
	OnFailure func(context.Context, Failure) error
	// Sleep waits between two attempts and returns early when ctx is done; nil
	// means the real clock.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Request is one request to a [Server].
type Request struct {
	// Method is the HTTP method; "" means POST.
	Method string
	// Path is the escaped path below the server's Base.
	Path string
	// Query is sent in addition to the query of the server's Base.
	Query url.Values
	// Header is sent in addition to the server's.
	Header http.Header
	// Body is sent as JSON; nil means none.
	Body any
	// Unsafe means that the request has an effect that must not be repeated. It is
	// retried only if the server has refused it.
	Unsafe bool
}

// Post sends body as JSON to a path of the server; see [Server.Do].
func (s *Server) Post(ctx context.Context, path string, body map[string]any, consume func(Reply) error) error {
	return s.Do(ctx, Request{Path: path, Body: body}, consume)
}

// Do sends a request and passes the successful response to consume, which reads it and need
// not close it. Transient failures, including those of consume, are retried with backoff up
// to MaxRetries times, except errors marked by [Interrupted]. The error is always a
// *tea.Error.
func (s *Server) Do(ctx context.Context, r Request, consume func(Reply) error) error {
	out, err := s.encode(r)
	if err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		f := s.try(ctx, out, consume)
		if f.Reason == nil {
			return nil
		}
		f.Attempt, f.Wait = attempt, retryWait(attempt, f.Reason)
		deadline, limited := ctx.Deadline()
		f.Again = f.Again && f.Reason.Retryable && attempt <= s.MaxRetries && ctx.Err() == nil && !(limited && time.Until(deadline) <= f.Wait)
		if s.OnFailure != nil {
			if err := s.OnFailure(ctx, f); err != nil {
				return tea.AsError(err)
			}
		}
		if !f.Again {
			return f.Reason
		}
		if err := s.sleep(ctx, f.Wait); err != nil {
			return contextError(ctx)
		}
	}
}

// encoded is a request that can be sent any number of times.
type encoded struct {
	Request
	address string
	body    []byte
}

func (s *Server) encode(r Request) (*encoded, error) {
	address, err := join(s.Base, r.Path, r.Query)
	if err != nil {
		return nil, err
	}
	out := &encoded{Request: r, address: address}
	out.Method = cmp.Or(r.Method, http.MethodPost)
	if r.Body != nil {
		if out.body, err = json.Marshal(r.Body); err != nil {
			return nil, tea.Errorf(tea.ValidationError, "encode the request: %w", err)
		}
	}
	return out, nil
}

// try makes one request; a failure without a reason is success.
func (s *Server) try(ctx context.Context, out *encoded, consume func(Reply) error) (f Failure) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	answering := false
	err := s.exchange(ctx, out, func(resp *http.Response) error {
		answering = true
		return consume(Reply{Response: resp, limit: s.MaxAnswer, cancel: cancel})
	})
	if err == nil {
		return Failure{}
	}
	f.Reason = s.toFailure(ctx, err)
	f.Again = !WasInterrupted(f.Reason) && (!out.Unsafe || refused(f.Reason))
	reported := tea.AsError(err).Type // an error that the server reports is not charged
	f.Answered = answering && (!errors.As(err, new(*tea.Error)) || WasInterrupted(f.Reason) || reported == tea.ResourceExhausted)
	if s.MaxRetryAfter > 0 && f.Reason.RetryAfter > s.MaxRetryAfter {
		f.Reason.Message += fmt.Sprintf("; the server asks for a wait of %s, which is longer than retry_after_max_seconds", f.Reason.RetryAfter)
		f.Reason.Details["retry_after_seconds"] = f.Reason.RetryAfter.Seconds()
		f.Reason.RetryAfter, f.Reason.Retryable = s.MaxRetryAfter, false
	}
	return f
}

// refused reports whether a server has not processed a failed request.
func refused(failure *tea.Error) bool {
	return failure.Type == tea.RateLimited || failure.Details["status"] == int64(http.StatusServiceUnavailable)
}

func (s *Server) exchange(ctx context.Context, out *encoded, consume func(*http.Response) error) error {
	req, err := http.NewRequestWithContext(ctx, out.Method, out.address, bytes.NewReader(out.body))
	if err != nil {
		return tea.Errorf(tea.ValidationError, "api_base is not a URL")
	}
	maps.Copy(req.Header, s.Header)
	maps.Copy(req.Header, out.Header)
	if out.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return consume(resp)
	}
	failure := statusError(resp)
	if s.RetryConflicts && resp.StatusCode == http.StatusConflict && failure.Type == tea.ValidationError {
		failure.Type, failure.Retryable = tea.ConnectionError, true
	}
	return failure
}

func (s *Server) sleep(ctx context.Context, d time.Duration) error {
	if s.Sleep != nil {
		return s.Sleep(ctx, d)
	}
	return backoff.Sleep(ctx, d)
}

// Missing explains a not_found error by the path of the address if hint returns what is wrong
// with it; other errors are returned unchanged.
func (s *Server) Missing(err error, hint func(path string) string) error {
	u, parseErr := url.Parse(s.Base)
	if e := tea.AsError(err); e != nil && e.Type == tea.NotFound && parseErr == nil {
		if text := hint(strings.Trim(u.Path, "/")); text != "" {
			explained := *e
			explained.Message += "; " + text
			return &explained
		}
	}
	return err
}

// join appends an escaped path and a query to the address of a server, keeping
// its query.
func join(base, path string, query url.Values) (string, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return "", tea.Errorf(tea.ValidationError, "api_base is not a URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", tea.Errorf(tea.ValidationError, "api_base must begin with http://, https:// or unix:/ and name a host or a socket")
	}
	if path != "" { // JoinPath would remove a slash at the end
		u = u.JoinPath(path)
	}
	if len(query) > 0 {
		all := u.Query()
		maps.Copy(all, query)
		u.RawQuery = all.Encode()
	}
	return u.String(), nil
}

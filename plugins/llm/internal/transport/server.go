package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
)

// Server is where a provider's requests go and how. It is safe for concurrent
// use; its fields are set before the first request.
type Server struct {
	// HTTP must not follow redirects; see [NewHTTP].
	HTTP *http.Client
	// Base is the address under which the paths of the protocol lie. Its
	// query, if it has one, is sent with every request.
	Base   string
	Header http.Header
	// Secrets are replaced by *** in errors.
	Secrets []string
	// MaxRetries is the number of further tries after the first one.
	MaxRetries int
	// MaxRetryAfter is the longest wait that the server may ask for.
	MaxRetryAfter time.Duration
	// TokenTimeout is how long a stream may pause between two tokens.
	TokenTimeout time.Duration
	// MaxAnswer is the maximum size of an answer in bytes; 0 means the
	// protocol's limit.
	MaxAnswer int
	// OnFailure receives each failed try; may be nil. An error from it ends
	// the request.
	OnFailure func(context.Context, Failure) error
	// Sleep waits between two tries and returns early when ctx is done; nil
	// means the real clock.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Post sends body as JSON to a path of the server and passes the answer of a
// successful try to consume, which reads it and need not close it. Transient
// failures, including those of consume, are retried with backoff up to
// MaxRetries times, except one marked by [Interrupted]. The error is always a
// *tea.Error.
func (s *Server) Post(ctx context.Context, path string, body map[string]any, consume func(Reply) error) error {
	address, err := join(s.Base, path)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return tea.Errorf(tea.ValidationError, "encode the request: %w", err)
	}
	for attempt := 1; ; attempt++ {
		f := s.try(ctx, address, raw, consume)
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

// try makes one request; a failure without a reason is success.
func (s *Server) try(ctx context.Context, address string, body []byte, consume func(Reply) error) (f Failure) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	answering := false
	err := s.exchange(ctx, address, body, func(resp *http.Response) error {
		answering = true
		return consume(Reply{Response: resp, limit: s.MaxAnswer, cancel: cancel})
	})
	if err == nil {
		return Failure{}
	}
	f.Reason = s.toFailure(ctx, err)
	f.Again = !WasInterrupted(f.Reason)
	reported := tea.AsError(err).Type // what the server itself reports is not charged
	f.Answered = answering && (!errors.As(err, new(*tea.Error)) || WasInterrupted(f.Reason) || reported == tea.ResourceExhausted)
	if s.MaxRetryAfter > 0 && f.Reason.RetryAfter > s.MaxRetryAfter {
		f.Reason.Message += fmt.Sprintf("; the server asks for a wait of %s, which is longer than retry_after_max_seconds", f.Reason.RetryAfter)
		f.Reason.Details["retry_after_seconds"] = f.Reason.RetryAfter.Seconds()
		f.Reason.RetryAfter, f.Reason.Retryable = s.MaxRetryAfter, false
	}
	return f
}

func (s *Server) exchange(ctx context.Context, address string, body []byte, consume func(*http.Response) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return tea.Errorf(tea.ValidationError, "api_base is not a URL")
	}
	for name, values := range s.Header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return consume(resp)
	}
	return statusError(resp)
}

func (s *Server) sleep(ctx context.Context, d time.Duration) error {
	if s.Sleep != nil {
		return s.Sleep(ctx, d)
	}
	return backoff.Sleep(ctx, d)
}

// Missing explains a not_found error by the path of the address, where hint
// returns what is wrong with it; other errors stay as they are.
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

// join appends an escaped path to the address of a server, keeping its query.
func join(base, path string) (string, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return "", tea.Errorf(tea.ValidationError, "api_base is not a URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", tea.Errorf(tea.ValidationError, "api_base must begin with http://, https:// or unix:/ and name a host or a socket")
	}
	return u.JoinPath(path).String(), nil
}

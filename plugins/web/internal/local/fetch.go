package local

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpstatus"
	"github.com/the-edge-agent/tea/sdk/x/safenet"
)

// accept is the Accept header of all requests.
const accept = "text/html,application/xhtml+xml,application/pdf;q=0.9,text/*;q=0.8,*/*;q=0.5"

// response is a server's response. The caller must not change it.
type response struct {
	url    *url.URL // after redirects
	status int
	header http.Header
	body   []byte
	cached bool // the server confirmed the page in the cache
	cut    bool // the body was cut off
}

// fetchOptions are the options of one fetch.
type fetchOptions struct {
	delay time.Duration
	limit int64
	// cut truncates a response at the limit; otherwise a longer response is an
	// error.
	cut bool
	// paced reports whether the caller has already waited for the first request.
	paced bool
	// visit is called before each request, including redirects; an error ends the
	// fetch. nil allows all.
	visit func(ctx context.Context, u *url.URL) error
}

// fetch reads an address and follows redirects. A status other than 2xx is an error.
// All errors are a *tea.Error.
func (r *Reader) fetch(ctx context.Context, u *url.URL, o fetchOptions) (*response, error) {
	visited := map[string]bool{}
	for hop := 0; ; hop++ {
		if hop > r.maxRedirects {
			return nil, failure(tea.ConnectionError, u, "more than %d redirects (settings.web.max_redirects)", r.maxRedirects)
		}
		if visited[u.String()] {
			return nil, failure(tea.ConnectionError, u, "the redirects form a loop")
		}
		visited[u.String()] = true
		if o.visit != nil {
			if err := o.visit(ctx, u); err != nil {
				return nil, err
			}
		}
		resp, next, err := r.fetchOnce(ctx, u, o)
		if err != nil || next == nil {
			return resp, err
		}
		o.paced = next.Host == u.Host // requests for one page count as one
		u = next
	}
}

// fetchOnce makes one request. It returns a response, or the address of a
// redirect.
func (r *Reader) fetchOnce(ctx context.Context, u *url.URL, o fetchOptions) (*response, *url.URL, error) {
	if err := r.guard.CheckHost(u.Hostname()); err != nil {
		return nil, nil, err
	}
	if !o.paced {
		if err := r.pace.wait(ctx, u.Host, o.delay); err != nil {
			return nil, nil, requestError(ctx, u, err)
		}
	}
	known := r.cache.get(u.String())
	resp, err := r.send(ctx, u, known)
	if err != nil {
		return nil, nil, requestError(ctx, u, err)
	}
	defer resp.Body.Close()
	switch code := resp.StatusCode; {
	case code == http.StatusNotModified && known != nil:
		r.cache.touch(u.String())
		header := http.Header{"Content-Type": {known.ContentType}, "X-Robots-Tag": {known.Robots}}
		return &response{url: u, status: http.StatusOK, header: header, body: known.body, cached: true}, nil, nil
	case isRedirect(code) && resp.Header.Get("Location") != "":
		next, err := redirectTarget(u, resp.Header.Get("Location"))
		return nil, next, err
	case code > 299 && code < 400:
		return nil, nil, failure(tea.ConnectionError, u, "the response has the status %d %s and no Location header", code, http.StatusText(code))
	case code < 200 || code > 299:
		return nil, nil, statusError(u, resp)
	}
	body, err := readBody(resp, o.limit)
	if o.cut && errors.Is(err, errTooLong) {
		return &response{url: u, status: resp.StatusCode, header: resp.Header, body: body, cut: true}, nil, nil
	}
	if err != nil {
		return nil, nil, bodyError(ctx, u, err, o.limit)
	}
	if resp.StatusCode == http.StatusOK {
		r.cache.put(u.String(), resp.Header, body)
	}
	return &response{url: u, status: resp.StatusCode, header: resp.Header, body: body}, nil, nil
}

func (r *Reader) send(ctx context.Context, u *url.URL, known *cachedPage) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", r.userAgent)
	req.Header.Set("Accept", accept)
	req.Header.Set("Accept-Encoding", acceptEncoding)
	if known != nil {
		if known.ETag != "" {
			req.Header.Set("If-None-Match", known.ETag)
		}
		if known.LastModified != "" {
			req.Header.Set("If-Modified-Since", known.LastModified)
		}
	}
	return r.transport.RoundTrip(req) // does not follow redirects and has no cookies
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// redirectTarget resolves a Location header. It drops user names and passwords.
func redirectTarget(from *url.URL, location string) (*url.URL, error) {
	next, err := from.Parse(location)
	if err != nil {
		return nil, failure(tea.ConnectionError, from, "the redirect to %q is not valid", location)
	}
	next.User = nil
	if next, err = safenet.ParseURL(next.String()); err != nil {
		return nil, failure(tea.PermissionDenied, from, "redirect refused: %s", tea.AsError(err).Message)
	}
	return next, nil
}

// failure returns an error that is not retryable.
func failure(kind tea.ErrorType, u *url.URL, format string, args ...any) *tea.Error {
	e := tea.Errorf(kind, "GET %s: "+format, append([]any{u}, args...)...)
	e.Source, e.Retryable = u.Host, false
	return e
}

// statusError is the error for a status that is not 2xx.
func statusError(u *url.URL, resp *http.Response) *tea.Error {
	kind, retryable := httpstatus.ErrorType(resp.StatusCode)
	e := failure(kind, u, "status %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	e.Retryable = retryable
	if retryable {
		e.RetryAfter = httpstatus.RetryAfter(resp.Header, time.Now())
	}
	e.Details = map[string]any{"status": int64(resp.StatusCode), "url": u.String()}
	return e
}

// requestError converts a failure without a response.
func requestError(ctx context.Context, u *url.URL, err error) *tea.Error {
	var typed *tea.Error
	if errors.As(err, &typed) {
		return typed
	}
	if ctx.Err() != nil {
		if typed = tea.AsError(context.Cause(ctx)); typed.Source == "" && typed.Type == tea.Timeout {
			typed = tea.Errorf(tea.Timeout, "GET %s: no complete response in time", u)
			typed.Source = u.Host
		}
		return typed
	}
	e := tea.Errorf(tea.ConnectionError, "GET %s: %w", u, err)
	e.Source = u.Host
	var certificate *tls.CertificateVerificationError
	var dns *net.DNSError
	e.Retryable = !errors.As(err, &certificate) && (!errors.As(err, &dns) || !dns.IsNotFound)
	return e
}

// bodyError converts an error of reading the body.
func bodyError(ctx context.Context, u *url.URL, err error, limit int64) *tea.Error {
	switch {
	case errors.Is(err, errTooLong):
		return failure(tea.ResourceExhausted, u, "the response exceeds %d bytes (settings.web.max_body_bytes)", limit)
	case errors.Is(err, errEncoding):
		return failure(tea.ConnectionError, u, "the response has a content encoding that is not supported")
	}
	return requestError(ctx, u, fmt.Errorf("read the response: %w", err))
}

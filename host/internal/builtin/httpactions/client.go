package httpactions

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// maxHeaderBytes bounds the headers of a response.
const maxHeaderBytes = 1 << 20

// client makes the calls for one set of settings and pools their connections.
// It is safe for concurrent use.
type client struct {
	settings Settings
	hosts    *hostList
	http     *http.Client
}

func newClient(given tea.Settings, version string) (*client, error) {
	settings, hosts, err := readSettings(given, version)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = maxHeaderBytes
	c := &client{settings: settings, hosts: hosts, http: &http.Client{Transport: transport}}
	c.http.CheckRedirect = c.checkRedirect
	return c, nil
}

// Close closes idle connections.
func (c *client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// call is one request, ready to be sent.
type call struct {
	method          string
	url             *url.URL
	header          http.Header
	body            []byte
	timeout         time.Duration
	followRedirects bool
	expected        []int // empty: all below 400
}

// do sends the call and reads the whole response.
func (c *client) do(ctx context.Context, call *call) (*answer, error) {
	timeout := tea.Errorf(tea.Timeout, "%s %s: no response within %s", call.method, plainURL(call.url), call.timeout)
	timeout.Source = call.url.Host
	ctx, cancel := context.WithTimeoutCause(ctx, call.timeout, timeout)
	defer cancel()
	req, err := call.request(ctx)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "%s %s: %w", call.method, plainURL(call.url), err)
	}
	sender := c.http
	if !call.followRedirects {
		sender = &http.Client{Transport: c.http.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	resp, err := sender.Do(req)
	if err != nil {
		return nil, transportError(ctx, call, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.settings.MaxBodyBytes+1))
	if err != nil {
		return nil, transportError(ctx, call, err)
	}
	a := &answer{status: resp.StatusCode, header: resp.Header, body: body}
	tooLong := int64(len(body)) > c.settings.MaxBodyBytes
	if err := a.check(call); err != nil {
		return nil, err
	}
	if tooLong {
		return nil, tea.Errorf(tea.ResourceExhausted, "%s %s: the response exceeds %d bytes (settings.http.max_body_bytes)", call.method, plainURL(call.url), c.settings.MaxBodyBytes)
	}
	return a, nil
}

// checkRedirect stops too many redirects and redirects to hosts that are not
// allowed, and does not send the caller's headers to other hosts.
func (c *client) checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > c.settings.MaxRedirects {
		e := tea.Errorf(tea.ConnectionError, "more than %d redirects (settings.http.max_redirects)", c.settings.MaxRedirects)
		e.Retryable = false
		return e
	}
	if err := c.hosts.check(req.URL); err != nil {
		refusal := tea.AsError(err)
		e := tea.Errorf(refusal.Type, "redirect refused: %s", refusal.Message)
		e.Details = refusal.Details
		return e
	}
	first := via[0].URL
	if req.URL.Host != first.Host || first.Scheme == "https" && req.URL.Scheme != "https" {
		for name := range req.Header {
			if !slices.Contains([]string{"Accept", "Accept-Language", "Content-Type", "User-Agent"}, name) {
				req.Header.Del(name)
			}
		}
	}
	return nil
}

// transportError converts a failure without a response to an action's error.
func transportError(ctx context.Context, call *call, err error) error {
	if ctx.Err() != nil {
		return tea.AsError(context.Cause(ctx))
	}
	var typed *tea.Error
	if errors.As(err, &typed) {
		return typed
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err // its text contains the whole URL
	}
	e := tea.Errorf(tea.ConnectionError, "%s %s: %w", call.method, plainURL(call.url), err)
	e.Source = call.url.Host
	e.Retryable = !isCertificateError(err)
	return e
}

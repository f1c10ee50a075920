//go:build !js

package httpactions

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

// maxHeaderBytes bounds the headers of a response.
const maxHeaderBytes = 1 << 20

// transport pools the connections of a client.
type transport struct {
	client *client
	http   *http.Client
}

func newTransport(c *client) *transport {
	pool := http.DefaultTransport.(*http.Transport).Clone()
	pool.MaxResponseHeaderBytes = maxHeaderBytes
	return &transport{client: c, http: &http.Client{Transport: httpapi.Once{Transport: pool}}}
}

// Close closes idle connections.
func (t *transport) Close() error {
	t.http.CloseIdleConnections()
	return nil
}

// exchange sends the call and reads the response, up to limit+1 bytes of the
// body: the last byte shows that the body is too long.
func (t *transport) exchange(ctx context.Context, call *call, limit int64) (*answer, error) {
	req, err := call.request(ctx)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "%s %s: %w", call.method, plainURL(call.url), err)
	}
	redirected := false
	sender := &http.Client{Transport: t.http.Transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if !call.followRedirects {
			return http.ErrUseLastResponse
		}
		redirected = true
		return t.checkRedirect(next, via)
	}}
	resp, err := sender.Do(req)
	if err != nil {
		return nil, transportError(ctx, call, err, redirected)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, transportError(ctx, call, err, redirected)
	}
	return &answer{redirected: resp.Request.Response != nil, status: resp.StatusCode, reason: http.StatusText(resp.StatusCode), header: textproto.MIMEHeader(resp.Header), body: body}, nil
}

// request builds the HTTP request.
func (c *call) request(ctx context.Context) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, c.method, c.url.String(), bytes.NewReader(c.body))
	if err != nil {
		return nil, err
	}
	if c.body == nil {
		req.Body, req.GetBody = http.NoBody, nil
	}
	req.Header = http.Header(c.header)
	if hosts := c.header.Values("Host"); len(hosts) > 0 {
		req.Host = hosts[0]
	}
	return req, nil
}

// checkRedirect stops too many redirects and redirects to hosts that are not
// allowed, and does not send the caller's headers to other hosts.
func (t *transport) checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > t.client.settings.MaxRedirects {
		e := tea.Errorf(tea.ConnectionError, "more than %d redirects (settings.http.max_redirects)", t.client.settings.MaxRedirects)
		e.Retryable = false
		return afterAnswer(e, via[0].Method)
	}
	if err := t.client.hosts.check(req.URL); err != nil {
		refusal := tea.AsError(err)
		e := tea.Errorf(refusal.Type, "redirect refused: %s", refusal.Message)
		e.Details = refusal.Details
		return afterAnswer(e, via[0].Method)
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

// transportError converts a failure without a response to an action error. After a redirect,
// the call has reached a server.
func transportError(ctx context.Context, call *call, err error, redirected bool) error {
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
	e := connectionError(call, err)
	var dial *net.OpError
	if !redirected && errors.As(err, &dial) && dial.Op == "dial" {
		e = e.NotSent()
	}
	if errors.Is(err, io.EOF) {
		e = connectionError(call, errors.New("the server closed the connection without an answer; it may have acted on the request"))
	}
	e.Retryable = !isCertificateError(err)
	return e
}

// isCertificateError reports whether err is a failure of trust, which is not
// retryable.
func isCertificateError(err error) bool {
	var verification *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var hostname x509.HostnameError
	return errors.As(err, &verification) || errors.As(err, &unknown) || errors.As(err, &hostname)
}

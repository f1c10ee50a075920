package httpactions

import (
	"context"
	"maps"
	"net/textproto"
	"net/url"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// client makes the calls for one set of settings. It is safe for concurrent use.
type client struct {
	settings Settings
	hosts    *hostList
	*transport
}

func newClient(given tea.Settings, version string) (*client, error) {
	settings, hosts, err := readSettings(given, version)
	if err != nil {
		return nil, err
	}
	c := &client{settings: settings, hosts: hosts}
	c.transport = newTransport(c)
	return c, nil
}

// call is one request, ready to be sent.
type call struct {
	method          string
	url             *url.URL
	header          textproto.MIMEHeader
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
	a, err := c.exchange(ctx, call, c.settings.MaxBodyBytes)
	if err != nil {
		return nil, err
	}
	tooLong := int64(len(a.body)) > c.settings.MaxBodyBytes
	if err := a.check(call); err != nil {
		return nil, err
	}
	if tooLong {
		return nil, tea.Errorf(tea.ResourceExhausted, "%s %s: the response exceeds %d bytes (settings.http.max_body_bytes)", call.method, plainURL(call.url), c.settings.MaxBodyBytes)
	}
	return a, nil
}

// connectionError is a failure without a response.
func connectionError(call *call, err error) *tea.Error {
	e := tea.Errorf(tea.ConnectionError, "%s %s: %w", call.method, plainURL(call.url), err)
	e.Source = call.url.Host
	return e
}

// afterAnswer marks an error that follows a redirect: the server has received the
// request, so it may have had its effect.
func afterAnswer(e *tea.Error, method string) *tea.Error {
	if method == "GET" || method == "HEAD" {
		return e
	}
	e.Details = maps.Clone(e.Details)
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details["not_sent"] = false
	return e
}

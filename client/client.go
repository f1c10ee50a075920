package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// maxAnswer bounds the size of an answer.
const maxAnswer = 256 << 20

// Options are the options of a client. The zero value is for a server on this machine.
type Options struct {
	// TokenFile is a file whose only line is the client's token. It is read for each
	// request, so that the token can be replaced.
	TokenFile string
	// TLS is used for https, with a client certificate or the authority of the server's
	// certificate.
	TLS *tls.Config
}

// Client is a client of a server. Create it with [New].
type Client struct {
	base      string
	tokenFile string
	http      *http.Client
}

// New returns a client of the server at an address: http://HOST:PORT, https://HOST:PORT or
// unix:PATH. The error reports an address that is not valid, or contains a user name or
// password, which must be in a file.
func New(address string, o Options) (*Client, error) {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: o.TLS, MaxIdleConnsPerHost: 8,
		IdleConnTimeout: 50 * time.Second, TLSHandshakeTimeout: 10 * time.Second, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
	}
	c := &Client{tokenFile: o.TokenFile, http: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the token is for this server only
	}}
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
		c.base = "http://localhost"
		return c, nil
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, errors.New("the address of the server is not a valid URL; expected http://HOST:PORT, https://HOST:PORT or unix:PATH") // without the error, which could contain a password
	case u.User != nil:
		return nil, errors.New("the address of the server has a user name or password; put the token into a file")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("the address of the server is %q; expected http://HOST:PORT, https://HOST:PORT or unix:PATH", address)
	}
	c.base = strings.TrimRight(u.String(), "/")
	return c, nil
}

// Close closes the idle connections of the client.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Error is an error of the server.
type Error struct {
	// Status is the HTTP status: 401 and 403 require another token, 404 is an unknown
	// workflow or run, 409 a run that is not in the right status, 422 an input or answer
	// that is not valid; 429, 503 and 507 can be retried after RetryAfter.
	Status     int           `json:"status"`
	Title      string        `json:"title"`
	Detail     string        `json:"detail"`
	RetryAfter time.Duration `json:"-"`
}

// Error returns the detail, or the title if there is none.
func (e *Error) Error() string {
	if e.Detail != "" {
		return e.Detail
	}
	return fmt.Sprintf("the server answered with status %d %s", e.Status, e.Title)
}

// errorOf reads an error of the server.
func errorOf(res *http.Response) error {
	e := &Error{}
	text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20)) // missing parts are replaced below
	if kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";"); kind != "application/problem+json" || json.Unmarshal(text, e) != nil {
		*e = Error{}
	}
	e.Status = res.StatusCode
	if e.Title == "" {
		e.Title = http.StatusText(res.StatusCode)
	}
	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return e
}

// send sends a request and returns its answer, whose body the caller closes. Error statuses
// are errors. A body is sent as JSON, or unchanged if it is a reader.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, header http.Header, body any) (*http.Response, error) {
	target := c.base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	var reader io.Reader
	switch body := body.(type) {
	case nil:
	case io.Reader:
		reader = body
	default:
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, target, reader)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if c.tokenFile != "" {
		token, err := os.ReadFile(c.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("read the token: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the server: %w", err)
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		defer res.Body.Close()
		return nil, errorOf(res)
	}
	return res, nil
}

// call sends a request and decodes its answer.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, header http.Header, body, answer any) error {
	res, err := c.send(ctx, method, path, query, header, body)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err == nil && len(text) > maxAnswer {
		err = fmt.Errorf("it has more than %d bytes", maxAnswer)
	}
	if err != nil {
		return fmt.Errorf("read the answer of the server: %w", err)
	}
	if to, ok := answer.(*json.RawMessage); ok {
		*to = text
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("read the answer of the server: %w", err)
	}
	return nil
}

package servertest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
)

// ErrLost is the error of a request whose response [Trips] loses.
var ErrLost = errors.New("the answer is lost")

// Trips counts the requests of an HTTP client, and loses responses.
type Trips struct {
	http.RoundTripper
	// Around replaces the sending of a request if it is not nil. It is set before the
	// first request.
	Around func(r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error)
	// Lose reports whether the response to request n is lost after the server has handled it. It is set before the
	// first request.
	Lose func(n int64) bool

	n atomic.Int64
}

// RoundTrip sends a request.
func (t *Trips) RoundTrip(r *http.Request) (*http.Response, error) {
	n := t.n.Add(1)
	send := t.RoundTripper.RoundTrip
	if t.Around != nil {
		send = func(r *http.Request) (*http.Response, error) { return t.Around(r, t.RoundTripper.RoundTrip) }
	}
	resp, err := send(r)
	if err != nil || t.Lose == nil || !t.Lose(n) {
		return resp, err
	}
	_, err = io.Copy(io.Discard, resp.Body) // the server is done
	return nil, errors.Join(ErrLost, err, resp.Body.Close())
}

// Count returns the number of requests.
func (t *Trips) Count() int64 { return t.n.Load() }

// Wrap makes t the transport of a client.
func (t *Trips) Wrap(h *http.Client) *http.Client {
	t.RoundTripper, h.Transport = h.Transport, t
	return h
}

// CloseIdleConnections closes the connections that no request uses.
func (t *Trips) CloseIdleConnections() {
	if c, ok := t.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Answer returns the response of a simulated server.
func Answer(status int, contentType, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(bytes.NewReader([]byte(body))), ContentLength: int64(len(body)),
	}
}

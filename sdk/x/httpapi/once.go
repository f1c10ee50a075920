package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// Once is a transport that sends a request with side effects once. If the connection
// ends without an answer, RoundTrip returns an error, and the caller decides whether to
// send the request again: the server may have acted on it. Every client of tea uses
// Once, because [http.Transport] alone may repeat such a request.
type Once struct{ *http.Transport }

// errSent is the error of a request that the transport tried to repeat.
var errSent = errors.New("the server ended the request without an answer; it may have acted on it, so the request is not sent again")

// RoundTrip implements [http.RoundTripper].
func (o Once) RoundTrip(req *http.Request) (*http.Response, error) {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return o.Transport.RoundTrip(req)
	}
	// Over HTTP/2 the transport repeats a request after certain errors of the stream.
	// It does not write a request whose context has ended.
	ctx, cancel := context.WithCancelCause(req.Context())
	var sent atomic.Bool
	req = req.Clone(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { sent.Store(true) },
		GotConn: func(httptrace.GotConnInfo) {
			if sent.Load() {
				cancel(errSent)
			}
		},
	}))
	// Over HTTP/1 it repeats a request with one of these headers. It checks only this
	// spelling; servers ignore the case of a name.
	rename(req.Header, "Idempotency-Key", "idempotency-key")
	rename(req.Header, "X-Idempotency-Key", "x-idempotency-key")
	resp, err := o.Transport.RoundTrip(req)
	if err != nil {
		if errors.Is(context.Cause(ctx), errSent) {
			err = errSent
		}
		cancel(nil)
		return nil, err
	}
	resp.Body = &ended{resp.Body, cancel}
	return resp, nil
}

func rename(header http.Header, from, to string) {
	if values, ok := header[from]; ok {
		delete(header, from)
		header[to] = values
	}
}

// ended releases the context of a request when the body of its answer is closed.
type ended struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (e *ended) Close() error {
	defer e.cancel(nil)
	return e.ReadCloser.Close()
}

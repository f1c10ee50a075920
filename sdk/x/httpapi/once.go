package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// Once is a transport that sends a request with side effects once. Every client of
// tea uses it: [http.Transport] alone sends such a request again after its connection
// ended without an answer, when the server can have acted on the first one.
type Once struct{ *http.Transport }

// errSent is the error of a request that the transport wanted to send again.
var errSent = errors.New("the server ended the request without an answer; it may have acted on it, so the request is not sent again")

// RoundTrip sends a request.
func (o Once) RoundTrip(req *http.Request) (*http.Response, error) {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return o.Transport.RoundTrip(req)
	}
	// Over HTTP/2 the transport repeats a request after certain errors of the stream. A
	// request whose context has ended is not written.
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
	// Over HTTP/1 it repeats a request that has one of these headers. It looks for them in
	// this spelling only; to servers the case of a name makes no difference.
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

// ended releases the context of a request when its answer is closed.
type ended struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (e *ended) Close() error {
	defer e.cancel(nil)
	return e.ReadCloser.Close()
}

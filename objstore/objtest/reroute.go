package objtest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/the-edge-agent/tea/objstore"
)

// Rerouted returns a scheme whose requests, including those for credentials, go to a
// handler. The handler sees the original host of a request.
func Rerouted(t testing.TB, scheme objstore.Scheme, handler http.Handler) objstore.Scheme {
	t.Helper()
	to := reroute(t, handler)
	connect := scheme.Connect
	scheme.Connect = func(ctx context.Context, target objstore.Target) (objstore.Driver, error) {
		target.HTTP.Transport = to(target.HTTP.Transport)
		return connect(ctx, target)
	}
	return scheme
}

func reroute(t testing.TB, handler http.Handler) func(http.RoundTripper) http.RoundTripper {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return func(next http.RoundTripper) http.RoundTripper { return &rerouted{next, address.Host} }
}

type rerouted struct {
	http.RoundTripper
	host string
}

func (r *rerouted) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	if out.Host == "" {
		out.Host = req.URL.Host
	}
	out.URL.Scheme, out.URL.Host = "http", r.host
	resp, err := r.RoundTripper.RoundTrip(out)
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

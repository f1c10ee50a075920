package httpactions_test

import (
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi/servertest"
)

// A server that reads a request and then closes its connection, which was used
// before, got the request a second time.
func TestPostReachesAServerTwice(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		action string
		params params
	}{
		{"http.post", params{"json": params{"a": 1}}},
		{"http.post", params{}},
		{"http.patch", params{"body": "a"}},
		{"http.put", params{"body": "a", "headers": params{"Idempotency-Key": "mine"}}},
		{"http.delete", params{"headers": params{"x-idempotency-key": "mine"}}},
		{"http.request", params{"method": "post", "body": "a", "follow_redirects": false}},
	} {
		c := open(t, nil)
		c.IdempotencyKey = "run-1/n"
		server := servertest.Start(t, servertest.Reply{}, servertest.Reply{Then: servertest.Break}, servertest.Reply{})
		c.Must("http.get", params{"url": server.URL})
		test.params["url"] = server.URL
		e := c.Fails(tea.ConnectionError, test.action, test.params)
		if n := len(server.Seen()) - 1; n != 1 || !e.Retryable || !strings.Contains(e.Message, "it may have acted on the request") {
			t.Errorf("%s %v: %d requests, %v, retryable %v", test.action, test.params, n, e, e.Retryable)
		}
		if got := server.Seen()[1].Header; got.Get("Idempotency-Key") == "" && got.Get("X-Idempotency-Key") == "" {
			t.Errorf("%s %v sends no key: %v", test.action, test.params, got)
		}
	}
	c := open(t, nil)
	server := servertest.Start(t, servertest.Reply{}, servertest.Reply{Then: servertest.Break}, servertest.Reply{})
	c.Must("http.get", params{"url": server.URL})
	c.Must("http.get", params{"url": server.URL})
	if n := len(server.Seen()) - 1; n != 2 {
		t.Errorf("http.get makes %d requests, want a second one", n)
	}
}

package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi/servertest"
)

func TestGetSendsTheQueryAndNoBody(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, servertest.Reply{Chunks: []string{"{}"}})
	client := &Server{HTTP: servertest.HTTP(t), Base: server.URL + "/v1?key=base", Header: http.Header{"Authorization": {"Bearer x"}}}
	err := client.Do(t.Context(), Request{
		Method: http.MethodGet, Path: "search", Query: url.Values{"q": {"a b&c"}}, Header: http.Header{"X-Once": {"1"}},
	}, func(Reply) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	seen := server.Seen()[0]
	if seen.Path != "/v1/search" || seen.Query != "key=base&q=a+b%26c" || seen.Body != nil {
		t.Errorf("got %s?%s with the body %v", seen.Path, seen.Query, seen.Body)
	}
	if seen.Header.Get("Authorization") != "Bearer x" || seen.Header.Get("X-Once") != "1" || seen.Header.Get("Content-Type") != "" {
		t.Errorf("got the headers %v", seen.Header)
	}
}

// A request that creates something is repeated only if the server says that it
// has not acted on it.
func TestUnsafeRequestIsRepeatedOnlyAfterARefusal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply    servertest.Reply
		requests int
	}{
		"429":    {servertest.Reply{Status: 429}, 2},
		"503":    {servertest.Reply{Status: 503}, 2},
		"500":    {servertest.Reply{Status: 500}, 1},
		"broken": {servertest.Reply{Then: servertest.Break}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := servertest.Start(t, c.reply, servertest.Reply{Chunks: []string{"{}"}})
			client := &Server{HTTP: servertest.HTTP(t), Base: server.URL, MaxRetries: 3, Sleep: func(context.Context, time.Duration) error { return nil }}
			err := client.Do(t.Context(), Request{Unsafe: true}, func(Reply) error { return nil })
			if (err == nil) != (c.requests == 2) {
				t.Error(err)
			}
			if diff := cmp.Diff(c.requests, len(server.Seen())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAccountWithoutCreditIsNotRetried(t *testing.T) {
	t.Parallel()
	_, waits, failure := post(t.Context(), t, 3, servertest.Reply{Status: 402, Chunks: []string{`{"success":false,"error":"Insufficient credits"}`}})
	if len(waits) != 0 || failure == nil || failure.Type != tea.RateLimited || failure.Retryable || failure.Message != "HTTP 402: Insufficient credits" {
		t.Errorf("waited %v, %v", waits, failure)
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]tea.ErrorType{
		`{"a": 1}`:                             "",
		"":                                     tea.ConnectionError,
		"<!DOCTYPE html><title>Log in</title>": tea.ConnectionError,
		`{"a": "x"}`:                           tea.ConnectionError,
	} {
		server := servertest.Start(t, servertest.Reply{Chunks: []string{body}})
		client := &Server{HTTP: servertest.HTTP(t), Base: server.URL}
		var got struct {
			A int `json:"a"`
		}
		err := client.Post(t.Context(), "", nil, func(reply Reply) error { return reply.Decode(&got, "results") })
		if e := tea.AsError(err); want == "" && (e != nil || got.A != 1) || want != "" && (e == nil || e.Type != want) {
			t.Errorf("%q: got %v, %v", body, got, err)
		}
	}
}

package httpapi

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi/servertest"
)

// post sends one request to a server of these replies, without real waits,
// and gives what was read, how long it would have waited, and the failure.
func post(ctx context.Context, t *testing.T, retries int, replies ...servertest.Reply) (body string, waits []time.Duration, failure *tea.Error) {
	t.Helper()
	server := &Server{
		HTTP: servertest.HTTP(t), Base: servertest.Start(t, replies...).URL + "?key=in-the-query", MaxRetries: retries,
		Header:  http.Header{"Authorization": {"Bearer very-secret-key"}},
		Secrets: []string{"very-secret-key"}, MaxRetryAfter: time.Minute,
		Sleep: func(ctx context.Context, d time.Duration) error {
			waits = append(waits, d)
			return ctx.Err()
		},
	}
	err := server.Post(ctx, "x", map[string]any{}, func(reply Reply) error {
		raw, err := reply.ReadAll()
		body = string(raw)
		return err
	})
	if err != nil && !errors.As(err, &failure) {
		t.Fatalf("not a *tea.Error: %v", err)
	}
	return body, waits, failure
}

func TestRetries(t *testing.T) {
	t.Parallel()
	ok := servertest.Reply{Chunks: []string{"fine"}}
	for _, c := range []struct {
		name  string
		first servertest.Reply
		again bool
	}{
		{"408", servertest.Reply{Status: 408}, true},
		{"409", servertest.Reply{Status: 409}, false},
		{"429", servertest.Reply{Status: 429}, true},
		{"500", servertest.Reply{Status: 500}, true},
		{"502", servertest.Reply{Status: 502}, true},
		{"503", servertest.Reply{Status: 503}, true},
		{"529", servertest.Reply{Status: 529}, true},
		{"broken before the answer", servertest.Reply{Then: servertest.Break}, true},
		{"broken in the answer", servertest.Reply{Chunks: []string{"fi"}, Then: servertest.Break}, true},
		{"400", servertest.Reply{Status: 400}, false},
		{"401", servertest.Reply{Status: 401}, false},
		{"403", servertest.Reply{Status: 403}, false},
		{"404", servertest.Reply{Status: 404}, false},
		{"422", servertest.Reply{Status: 422}, false},
		{"redirect", servertest.Reply{Status: 302, Header: map[string]string{"Location": "http://elsewhere/"}}, false},
		{"quota used up", servertest.Reply{Status: 429, Chunks: []string{`{"error":{"code":"insufficient_quota"}}`}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			body, waits, failure := post(t.Context(), t, 3, c.first, ok)
			if c.again && (failure != nil || body != "fine" || len(waits) != 1) {
				t.Errorf("got %q after %v, %v; want one further try", body, waits, failure)
			}
			if !c.again && (failure == nil || len(waits) != 0) {
				t.Errorf("got %q after %v; want no further try", body, waits)
			}
		})
	}
}

func TestConflictsAreRetriedWhereTheServiceDocumentsIt(t *testing.T) {
	t.Parallel()
	for _, documented := range []bool{false, true} {
		replies := servertest.Start(t, servertest.Reply{Status: 409, Chunks: []string{`{"error":"busy"}`}}, servertest.Reply{Chunks: []string{"fine"}})
		server := &Server{HTTP: servertest.HTTP(t), Base: replies.URL, MaxRetries: 1, RetryConflicts: documented, Sleep: func(context.Context, time.Duration) error { return nil }}
		err := server.Post(t.Context(), "x", nil, func(reply Reply) error { _, err := reply.ReadAll(); return err })
		if documented && err != nil || !documented && tea.AsError(err).Type != tea.ValidationError {
			t.Errorf("documented %v: %v", documented, err)
		}
	}
}

func TestRetriesEndAndWaitLonger(t *testing.T) {
	t.Parallel()
	_, waits, failure := post(t.Context(), t, 4, servertest.Reply{Status: 503, Chunks: []string{`{"error":"loading model"}`}})
	if failure == nil || failure.Type != tea.ConnectionError || !failure.Retryable || failure.Message != "HTTP 503: loading model" {
		t.Errorf("got %v", failure)
	}
	if len(waits) != 4 {
		t.Fatalf("waited %v", waits)
	}
	for i, wait := range waits {
		if full := (500 * time.Millisecond) << i; wait < full/2 || wait > full {
			t.Errorf("wait %d is %s, want %s to %s", i+1, wait, full/2, full)
		}
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	limited := servertest.Reply{Status: 429, Header: map[string]string{"Retry-After": "17"}, Chunks: []string{`{"error":{"message":"slow down"}}`}}
	_, waits, failure := post(t.Context(), t, 1, limited)
	if diff := cmp.Diff([]time.Duration{17 * time.Second}, waits); diff != "" {
		t.Error(diff)
	}
	if failure == nil || failure.Type != tea.RateLimited || failure.RetryAfter != 17*time.Second || failure.Message != "HTTP 429: slow down" {
		t.Errorf("got %#v", failure)
	}
}

// Google's servers ask for a wait in the body.
func TestRetryDelayInTheBodyIsHonoured(t *testing.T) {
	t.Parallel()
	const body = `{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"},{"retryDelay":"soon"},7]}}`
	_, _, failure := post(t.Context(), t, 0, servertest.Reply{Status: 429, Chunks: []string{body}})
	if failure == nil || failure.Type != tea.RateLimited || failure.RetryAfter != 34500*time.Millisecond {
		t.Errorf("got %#v", failure)
	}
}

// A wait that ends after the deadline is of no use: the caller learns at once
// when to come back.
func TestRetryAfterBeyondTheDeadlineFailsAtOnce(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, waits, failure := post(ctx, t, 3, servertest.Reply{Status: 429, Header: map[string]string{"Retry-After": "50"}})
	if len(waits) != 0 || failure == nil || failure.RetryAfter != 50*time.Second {
		t.Errorf("waited %v, %v", waits, failure)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		reply servertest.Reply
		want  tea.Error
	}{
		{
			"OpenAI",
			servertest.Reply{Status: 400, Chunks: []string{`{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}`}},
			tea.Error{Type: tea.ValidationError, Message: "HTTP 400: too long", Details: map[string]any{"status": int64(400), "code": "context_length_exceeded", "kind": "invalid_request_error"}},
		},
		{
			"Ollama",
			servertest.Reply{Status: 404, Chunks: []string{`{"error":"model 'x' not found"}`}},
			tea.Error{Type: tea.NotFound, Message: "HTTP 404: model 'x' not found", Details: map[string]any{"status": int64(404)}},
		},
		{
			"vLLM",
			servertest.Reply{Status: 422, Chunks: []string{`{"object":"error","message":"bad","code":422}`}},
			tea.Error{Type: tea.ValidationError, Message: "HTTP 422: bad", Details: map[string]any{"status": int64(422), "code": "422"}},
		},
		{
			"Anthropic",
			servertest.Reply{Status: 413, Chunks: []string{`{"type":"error","error":{"type":"request_too_large","message":"too large"},"request_id":"req_1"}`}},
			tea.Error{Type: tea.ValidationError, Message: "HTTP 413: too large", Details: map[string]any{"status": int64(413), "kind": "request_too_large"}},
		},
		{
			"Gemini",
			servertest.Reply{Status: 400, Chunks: []string{`{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}`}},
			tea.Error{Type: tea.PermissionDenied, Message: "HTTP 400: API key not valid", Details: map[string]any{"status": int64(400), "code": "400", "kind": "API_KEY_INVALID"}},
		},
		{
			"not to be retried",
			servertest.Reply{Status: 500, Header: map[string]string{"X-Should-Retry": "false"}, Chunks: []string{"no"}},
			tea.Error{Type: tea.ConnectionError, Message: "HTTP 500: no", Details: map[string]any{"status": int64(500)}},
		},
		{
			"a list",
			servertest.Reply{Status: 403, Chunks: []string{`[{"error":{"message":"no"}}]`}},
			tea.Error{Type: tea.PermissionDenied, Message: "HTTP 403: no", Details: map[string]any{"status": int64(403)}},
		},
		{
			"plain text",
			servertest.Reply{Status: 401, Chunks: []string{"who are you?\n"}},
			tea.Error{Type: tea.PermissionDenied, Message: "HTTP 401: who are you?", Details: map[string]any{"status": int64(401)}},
		},
		{
			"nothing",
			servertest.Reply{Status: 401},
			tea.Error{Type: tea.PermissionDenied, Message: "HTTP 401: Unauthorized", Details: map[string]any{"status": int64(401)}},
		},
		{
			"the key comes back",
			servertest.Reply{Status: 401, Chunks: []string{`{"error":{"message":"bad key very-secret-key","code":"very-secret-key"}}`}},
			tea.Error{Type: tea.PermissionDenied, Message: "HTTP 401: bad key ***", Details: map[string]any{"status": int64(401), "code": "***"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, _, failure := post(t.Context(), t, 0, c.reply)
			if failure == nil {
				t.Fatal("no failure")
			}
			if !strings.HasPrefix(failure.Source, "127.0.0.1:") {
				t.Errorf("source %q", failure.Source)
			}
			got := tea.Error{Type: failure.Type, Message: failure.Message, Details: failure.Details, Retryable: failure.Retryable}
			if diff := cmp.Diff(c.want.Message, got.Message); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.want.Details, got.Details); diff != "" {
				t.Error(diff)
			}
			if got.Type != c.want.Type || got.Retryable {
				t.Errorf("type %s, retryable %v", got.Type, got.Retryable)
			}
		})
	}
}

func TestStreamErrorsHaveTheStatusThatTheirCodeMeans(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]tea.ErrorType{
		`{"message":"x","code":"rate_limit_exceeded"}`:    tea.RateLimited,
		`{"message":"x","code":429}`:                      tea.RateLimited,
		`{"message":"x","type":"invalid_request_error"}`:  tea.ValidationError,
		`{"error":{"message":"x","type":"server_error"}}`: tea.ConnectionError,
		`"x"`: tea.ConnectionError,
		`{"message":"x","code":"model_not_found"}`: tea.NotFound,
	} {
		e := StreamError([]byte(raw))
		if e.Type != want || e.Message != "x" {
			t.Errorf("%s: got %v, want %s", raw, e, want)
		}
	}
}

func TestConnectionFailureDoesNotShowTheAddress(t *testing.T) {
	t.Parallel()
	server := &Server{HTTP: servertest.HTTP(t), Base: "http://user:password@127.0.0.1:1/x?key=in-the-query"}
	err := server.Post(t.Context(), "", nil, nil)
	var failure *tea.Error
	if !errors.As(err, &failure) || failure.Type != tea.ConnectionError || !failure.Retryable {
		t.Fatalf("got %v", err)
	}
	for _, secret := range []string{"password", "in-the-query"} {
		if strings.Contains(failure.Error(), secret) {
			t.Errorf("%q is in %q", secret, failure.Error())
		}
	}
	if u, _ := url.Parse("http://127.0.0.1:1"); failure.Source != u.Host {
		t.Errorf("source %q", failure.Source)
	}
}

// Cancelling must reach the server, which would go on generating otherwise.
func TestCancelClosesTheConnection(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, servertest.Reply{Chunks: []string{"a"}, Then: servertest.Hang})
	client := &Server{HTTP: servertest.HTTP(t), Base: server.URL, MaxRetries: 3}
	ctx, cancel := context.WithCancel(t.Context())
	err := client.Post(ctx, "", nil, func(reply Reply) error {
		cancel()
		_, err := reply.ReadAll()
		return err
	})
	if e := tea.AsError(err); e.Type != tea.Canceled {
		t.Errorf("got %v", err)
	}
	<-server.Gone
	if n := len(server.Seen()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestTotalLimit(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, servertest.Reply{Then: servertest.Hang})
	client := &Server{HTTP: servertest.HTTP(t), Base: server.URL, MaxRetries: 3}
	ctx, cancel := Expire(t.Context(), 30*time.Millisecond)
	defer cancel()
	err := client.Post(ctx, "", nil, func(reply Reply) error {
		_, err := reply.ReadAll()
		return err
	})
	if e := tea.AsError(err); e == nil || e.Type != tea.Timeout || !strings.Contains(e.Message, "timeout_seconds") {
		t.Errorf("got %v", err)
	}
	if len(server.Seen()) > 0 { // on a busy machine the limit may come first
		<-server.Gone
	}
}

// A server that asks for a day off is not waited for: the caller learns at
// once, and may use another server.
func TestRetryAfterIsBounded(t *testing.T) {
	t.Parallel()
	_, waits, failure := post(t.Context(), t, 3, servertest.Reply{Status: 429, Header: map[string]string{"Retry-After": "86400"}})
	if len(waits) != 0 || failure == nil || failure.Type != tea.RateLimited {
		t.Fatalf("waited %v, %v", waits, failure)
	}
	if !strings.Contains(failure.Message, "24h0m0s") {
		t.Errorf("message %q", failure.Message)
	}
	if failure.Retryable || failure.RetryAfter != time.Minute || failure.Details["retry_after_seconds"] != 86400.0 {
		t.Errorf("retryable %v, retry_after %s, details %v", failure.Retryable, failure.RetryAfter, failure.Details)
	}
}

func TestEndlessHeader(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
		for err == nil {
			_, err = io.WriteString(conn, "X-More: "+strings.Repeat("a", 1000)+"\r\n")
		}
	}))
	t.Cleanup(server.Close)
	client, err := NewHTTP(Route{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	err = (&Server{HTTP: client, Base: server.URL}).Post(t.Context(), "", nil, nil)
	if e := tea.AsError(err); e == nil || e.Type != tea.ConnectionError || !strings.Contains(e.Message, "headers exceeded") {
		t.Errorf("got %v", err)
	}
}

// A redirect would carry the key to wherever it leads.
func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	other := servertest.Start(t, servertest.Reply{})
	server := servertest.Start(t, servertest.Reply{Status: 307, Header: map[string]string{"Location": other.URL}})
	client, err := NewHTTP(Route{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	err = (&Server{HTTP: client, Base: server.URL, Header: http.Header{"Authorization": {"Bearer very-secret-key"}}}).Post(t.Context(), "", nil, nil)
	if e := tea.AsError(err); e == nil || e.Type != tea.ValidationError || !strings.Contains(e.Message, other.URL) {
		t.Errorf("got %v", err)
	}
	if n := len(other.Seen()); n != 0 {
		t.Errorf("%d requests to another host", n)
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "tea-llm-") //nolint:usetesting // a test's own directory may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.Path) })}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	for base, want := range map[string]string{"unix:" + path: "/x", "unix://" + path + ":/v1": "/v1/x"} {
		address, socket, err := SplitSocket(base)
		if err != nil {
			t.Fatal(err)
		}
		client, err := NewHTTP(Route{Socket: socket})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.CloseIdleConnections)
		err = (&Server{HTTP: client, Base: address}).Post(t.Context(), "x", nil, func(r Reply) error {
			if body, err := r.ReadAll(); err != nil || string(body) != want {
				t.Errorf("%s: got %q, %v", base, body, err)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", base, err)
		}
	}
	for _, base := range []string{"unix:relative.sock", "unix:", "unix:/a.sock:v1"} {
		if _, _, err := SplitSocket(base); tea.AsError(err) == nil || tea.AsError(err).Type != tea.ValidationError {
			t.Errorf("%s: got %v", base, err)
		}
	}
}

func TestCAFile(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "fine") }))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "bad.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for path, data := range map[string][]byte{good: certificate, bad: []byte("no certificate")} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		file string
		want tea.ErrorType
	}{{good, ""}, {"", tea.ConnectionError}, {bad, tea.ValidationError}, {filepath.Join(dir, "none.pem"), tea.NotFound}} {
		client, err := NewHTTP(Route{CAFile: c.file})
		if err == nil {
			t.Cleanup(client.CloseIdleConnections)
			err = (&Server{HTTP: client, Base: server.URL}).Post(t.Context(), "", nil, func(r Reply) error {
				_, err := r.ReadAll()
				return err
			})
		}
		if e := tea.AsError(err); e == nil && c.want != "" || e != nil && (e.Type != c.want || e.Retryable) {
			t.Errorf("%q: got %v", c.file, err)
		}
	}
}

// wild is a body that never ends.
type wild struct{}

func (wild) Read(p []byte) (int, error) { return len(p), nil }
func (wild) Close() error               { return nil }

func TestStreamThatNeverEnds(t *testing.T) {
	t.Parallel()
	n, err := io.Copy(io.Discard, Reply{Response: &http.Response{Body: wild{}}, limit: 1 << 20}.Stream())
	if e := tea.AsError(err); n != streamFactor<<20 || e == nil || e.Type != tea.ResourceExhausted || e.Retryable {
		t.Errorf("got %d bytes, %v", n, err)
	}
}

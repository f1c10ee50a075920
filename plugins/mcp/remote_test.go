package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	tea "github.com/the-edge-agent/tea/sdk"
)

// serveHTTP serves the test server, behind guard if it is not nil.
func serveHTTP(t *testing.T, guard func(w http.ResponseWriter, r *http.Request) bool) *httptest.Server {
	t.Helper()
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return newTestServer("good", nil) }, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if guard == nil || guard(w, r) {
			handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func TestServerOverHTTP(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("X-Team") != "edge" || r.Header.Get("Authorization") != "Bearer t0ken" {
			http.Error(w, "no", http.StatusUnauthorized)
			return false
		}
		return true
	})
	c := open(t, with(map[string]any{"url": s.URL}, "headers", map[string]any{"X-Team": "edge"}, "token", "t0ken"))
	if got := c.must(t, "mcp.s_add", map[string]any{"a": 1, "b": 2})["text"]; got != `{"sum":3}` {
		t.Errorf("add: %v", got)
	}
	if read := c.must(t, "mcp.read_resource", map[string]any{"server": "s", "uri": "mem://notes"}); read["text"] != "milk and eggs" {
		t.Errorf("read: %v", read)
	}
	c.host.Actions = map[string]func(context.Context, any) (any, error){"human.ask": func(context.Context, any) (any, error) {
		return map[string]any{"success": true, "answer": map[string]any{"branch": "main"}}, nil
	}}
	if got := c.must(t, "mcp.s_ask", nil)["text"]; got != "accept main" {
		t.Errorf("ask: %v", got)
	}
	without := open(t, with(map[string]any{"url": s.URL}))
	_, err := without.call(t.Context(), "mcp.s_add", map[string]any{"a": 1})
	refused(t, err, tea.PermissionDenied, "401 Unauthorized", "token")
}

// Integers keep their digits, over each transport.
func TestLongIntegersInResults(t *testing.T) {
	t.Parallel()
	want := map[string]any{
		"id": int64(9007199254740993), "least": int64(-9223372036854775808), "huge": json.Number("123456789012345678901234567890"),
		"whole": int64(2), "half": 0.5, "text": "<9007199254740993>", "list": []any{int64(9007199254740995)},
	}
	plain := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return newTestServer("good", nil) }, &sdk.StreamableHTTPOptions{JSONResponse: true})
	answers := httptest.NewServer(plain)
	t.Cleanup(answers.Close)
	for name, server := range map[string]map[string]any{
		"a process": testServer("good"),
		"events":    {"url": serveHTTP(t, nil).URL},
		"JSON":      {"url": answers.URL},
	} {
		if diff := cmp.Diff(want, open(t, with(server)).must(t, "mcp.s_numbers", nil)["data"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A server can end a session at any time; the client begins another one.
func TestExpiredSession(t *testing.T) {
	t.Parallel()
	var expired, calls atomic.Int64
	s := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost {
			return true
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if !bytes.Contains(body, []byte(`"tools/call"`)) && !bytes.Contains(body, []byte(`"resources/read"`)) {
			return true
		}
		if calls.Add(1); expired.Add(-1) >= 0 {
			http.Error(w, "session not found", http.StatusNotFound)
			return false
		}
		return true
	})
	c := open(t, with(map[string]any{"url": s.URL}))
	for range 2 {
		expired.Store(1)
		if got := c.must(t, "mcp.s_add", map[string]any{"a": 1, "b": 2})["text"]; got != `{"sum":3}` {
			t.Errorf("add: %v", got)
		}
	}
	expired.Store(1)
	if read := c.must(t, "mcp.read_resource", map[string]any{"server": "s", "uri": "mem://notes"}); read["text"] != "milk and eggs" {
		t.Errorf("read: %v", read)
	}
	expired.Store(1000)
	calls.Store(0)
	_, err := c.call(t.Context(), "mcp.s_add", map[string]any{"a": 1})
	refused(t, err, tea.ConnectionError, "404 Not Found")
	if n := calls.Load(); n != 2 {
		t.Errorf("%d attempts, want 2", n)
	}
}

func TestUnreachableServer(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	c := open(t, with(map[string]any{"url": s.URL}))
	_, err := c.call(t.Context(), "mcp.s_add", map[string]any{"a": 1})
	refused(t, err, tea.ConnectionError, "Not Found")
	s.Close()
	_, err = c.call(t.Context(), "mcp.s_add", map[string]any{"a": 1})
	refused(t, err, tea.ConnectionError)
}

// The credentials of a server must not reach a host to which it redirects.
func TestRedirectToAnotherHost(t *testing.T) {
	t.Parallel()
	var stolen atomic.Pointer[string]
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen := r.Header.Get("Authorization")
		stolen.Store(&seen)
	}))
	defer thief.Close()
	s := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
		return false
	})
	c := open(t, with(map[string]any{"url": s.URL}, "token", "t0ken"))
	_, err := c.call(t.Context(), "mcp.s_add", map[string]any{"a": 1})
	refused(t, err, tea.ConnectionError, "redirects to another host")
	if stolen.Load() != nil {
		t.Errorf("the other host was asked, with %q", *stolen.Load())
	}
}

func TestEndlessAnswer(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		line := []byte(strings.Repeat(" ", 1<<20))
		for {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	}))
	defer s.Close()
	c := open(t, with(map[string]any{"url": s.URL}))
	_, err := c.call(t.Context(), "mcp.s_add", map[string]any{"a": 1})
	refused(t, err, tea.ConnectionError, "larger than 32 MiB")
}

// The token comes from the authorization server that the MCP server names.
func TestOAuthClientCredentials(t *testing.T) {
	t.Parallel()
	var resource, address atomic.Pointer[string]
	var asked atomic.Int64
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/oauth-protected-resource", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"resource": *resource.Load(), "authorization_servers": []any{*address.Load()}, "scopes_supported": []any{"tools"}})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		base := *address.Load()
		answer(w, map[string]any{"issuer": base, "token_endpoint": base + "/token", "authorization_endpoint": base + "/authorize", "response_types_supported": []any{"code"}, "grant_types_supported": []any{"client_credentials"}, "code_challenge_methods_supported": []any{"S256"}, "token_endpoint_auth_methods_supported": []any{"client_secret_post"}})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.FormValue("grant_type") != "client_credentials" || r.FormValue("client_id") != "tea" || r.FormValue("client_secret") != "s3cret" {
			http.Error(w, `{"error":"invalid_client"}`, http.StatusUnauthorized)
			return
		}
		answer(w, map[string]any{"access_token": "fresh", "token_type": "Bearer", "expires_in": 3600})
	})
	s := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) bool {
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return false
		}
		if r.Header.Get("Authorization") != "Bearer fresh" {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+*resource.Load()+`/.well-known/oauth-protected-resource"`)
			w.WriteHeader(http.StatusUnauthorized)
			return false
		}
		return true
	})
	base := s.URL
	if _, err := url.Parse(base); err != nil {
		t.Fatal(err)
	}
	resource.Store(&base)
	address.Store(&base)
	c := open(t, with(map[string]any{"url": s.URL}, "oauth", map[string]any{"client_id": "tea", "client_secret": "s3cret"}))
	if got := c.must(t, "mcp.s_add", map[string]any{"a": 1, "b": 2})["text"]; got != `{"sum":3}` {
		t.Errorf("add: %v", got)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("%d requests for a token, want 1", n)
	}
	// Another host gets the secret only if the user names it.
	elsewhere := strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	address.Store(&elsewhere)
	thief := open(t, with(map[string]any{"url": s.URL}, "oauth", map[string]any{"client_id": "tea", "client_secret": "s3cret"}))
	_, err := thief.call(t.Context(), "mcp.s_add", map[string]any{"a": 1})
	refused(t, err, tea.PermissionDenied, "the client secret is not sent to "+elsewhere, "oauth.issuer")
	if n := asked.Load(); n != 1 {
		t.Errorf("%d requests for a token, want 1", n)
	}
	named := open(t, with(map[string]any{"url": s.URL}, "oauth", map[string]any{"client_id": "tea", "client_secret": "s3cret", "issuer": elsewhere}))
	named.must(t, "mcp.s_add", map[string]any{"a": 1, "b": 2})
	address.Store(&base)
	wrong := open(t, with(map[string]any{"url": s.URL}, "oauth", map[string]any{"client_id": "tea", "client_secret": "guess"}))
	_, err = wrong.call(t.Context(), "mcp.s_add", map[string]any{"a": 1})
	if err == nil || strings.Contains(err.Error(), "guess") {
		t.Errorf("a wrong secret: %v", err)
	}
}

// A tool that a server has started is not called again when the connection, which was
// used before, ends without an answer.
func TestCallReachesAServerTwice(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	s := serveHTTP(t, func(_ http.ResponseWriter, r *http.Request) bool {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte(`"tools/call"`)) {
			calls.Add(1)
			panic(http.ErrAbortHandler)
		}
		return true
	})
	c := open(t, with(map[string]any{"url": s.URL}, "headers", map[string]any{"Idempotency-Key": "k"}))
	_, err := c.call(t.Context(), "mcp.s_add", map[string]any{"a": 1, "b": 2})
	if e := tea.AsError(err); e == nil || e.Type != tea.ConnectionError || calls.Load() != 1 {
		t.Errorf("%d calls, %v", calls.Load(), err)
	}
}

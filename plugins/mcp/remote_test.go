package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

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
	var address atomic.Pointer[string]
	var asked atomic.Int64
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/oauth-protected-resource", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"resource": *address.Load(), "authorization_servers": []any{*address.Load()}, "scopes_supported": []any{"tools"}})
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
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+*address.Load()+`/.well-known/oauth-protected-resource"`)
			w.WriteHeader(http.StatusUnauthorized)
			return false
		}
		return true
	})
	base := s.URL
	if _, err := url.Parse(base); err != nil {
		t.Fatal(err)
	}
	address.Store(&base)
	c := open(t, with(map[string]any{"url": s.URL}, "oauth", map[string]any{"client_id": "tea", "client_secret": "s3cret"}))
	if got := c.must(t, "mcp.s_add", map[string]any{"a": 1, "b": 2})["text"]; got != `{"sum":3}` {
		t.Errorf("add: %v", got)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("%d requests for a token, want 1", n)
	}
	wrong := open(t, with(map[string]any{"url": s.URL}, "oauth", map[string]any{"client_id": "tea", "client_secret": "guess"}))
	_, err := wrong.call(t.Context(), "mcp.s_add", map[string]any{"a": 1})
	if err == nil || strings.Contains(err.Error(), "guess") {
		t.Errorf("a wrong secret: %v", err)
	}
}

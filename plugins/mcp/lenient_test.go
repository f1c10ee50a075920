package mcp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Every call that left out a parameter with a default that its schema refuses was
// refused before the server saw it.
func TestToolWithDefaultsThatDoNotFit(t *testing.T) {
	t.Parallel()
	c := open(t, with(testServer("raw", "defaults")))
	for _, test := range []struct {
		given map[string]any
		want  string
	}{
		{nil, `{"page":1}`},
		{map[string]any{"tags": nil, "order": "asc", "filter": map[string]any{}}, `{"filter":{},"order":"asc","page":1}`},
	} {
		for action, given := range map[string]map[string]any{"mcp.s_list": test.given, "mcp.call": {"server": "s", "tool": "list", "arguments": test.given}} {
			if got := c.must(t, action, given)["text"]; got != test.want {
				t.Errorf("%s %v: the server got %v, want %s", action, test.given, got, test.want)
			}
		}
	}
	_, err := c.call(t.Context(), "mcp.s_list", map[string]any{"limit": "20"})
	refused(t, err, tea.ValidationError, "limit")
}

// A banner on the standard output ended the connection.
func TestServerThatPrintsABanner(t *testing.T) {
	t.Parallel()
	c := open(t, with(testServer("raw", "banner")))
	for range 3 {
		if got := c.must(t, "mcp.s_echo", nil)["text"]; got != "echo" {
			t.Errorf("the tool returned %v", got)
		}
	}
}

// Results that the SDK cannot read, or reads as empty.
func TestResultsOutsideTheProtocol(t *testing.T) {
	t.Parallel()
	c := open(t, with(testServer("raw", "result"), "timeout_seconds", 300.0))
	ask := func(result string) (map[string]any, error) {
		return c.call(t.Context(), "mcp.s_echo", map[string]any{"result": result})
	}
	_, err := ask("null")
	refused(t, err, tea.ConnectionError, "answer the call of the tool", "the result is null")
	for result, want := range map[string]map[string]any{
		`{"content": [{"type": "text", "text": "a"}, {"type": "video", "data": "AA==", "n": 9007199254740993}, {"type": "text", "text": "b"}]}`: {
			"text": "a\nb", "content": []any{map[string]any{"type": "video", "value": map[string]any{"type": "video", "data": "AA==", "n": int64(9007199254740993)}}},
		},
		`{"content": [null, {"text": "no type"}, {"type": "text", "text": "a"}], "structuredContent": {"id": 9007199254740993}}`: {
			"text": "a", "data": map[string]any{"id": int64(9007199254740993)},
			"content": []any{map[string]any{"type": "unknown"}, map[string]any{"type": "unknown", "value": map[string]any{"text": "no type"}}},
		},
		`{"content": [{"type": "text", "text": "{\"type\": \"video\"}"}]}`: {"text": `{"type": "video"}`},
	} {
		got, err := ask(result)
		if err != nil {
			t.Errorf("%s: %v", result, err)
			continue
		}
		want["success"] = true
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", result, diff)
		}
	}
	_, err = ask(`{"isError": true, "content": [{"type": "video"}, {"type": "text", "text": "no disk"}]}`)
	refused(t, err, "mcp_tool_error", "no disk")
}

// Servers refuse an unknown session in several ways; each failed every call until the
// end of the run.
func TestRefusalsOfAnExpiredSession(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status int
		body   string // %s is the id of the request
		calls  int64
	}{
		"404 with a text":             {404, "session not found", 2},
		"404 with an error":           {404, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`, 2},
		"404 with the id":             {404, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32001,"message":"Session not found"}}`, 2},
		"404 with another id":         {404, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session has expired"}}`, 2},
		"410":                         {410, "", 2},
		"410 with an error":           {410, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32001,"message":"gone"}}`, 2},
		"400 with a text":             {400, "Invalid session ID", 2},
		"400 with an error":           {400, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request: No valid session ID provided"}}`, 2},
		"400 for this request":        {400, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"bad arguments"}}`, 1},
		"404 for an unknown method":   {404, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, 1},
		"403, which is no such thing": {403, "no", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, method := range []string{"tools/call", "resources/read", "tools/list"} {
				var calls, refusing atomic.Int64
				s := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) bool {
					body, err := io.ReadAll(r.Body)
					if err != nil {
						t.Error(err)
					}
					r.Body = io.NopCloser(bytes.NewReader(body))
					var message struct {
						ID     json.RawMessage
						Method string
					}
					if json.Unmarshal(body, &message) != nil || message.Method != method || refusing.Load() == 0 {
						return true
					}
					if calls.Add(1); calls.Load() > 1 {
						return true
					}
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(test.status)
					fmt.Fprint(w, strings.ReplaceAll(test.body, "%s", string(message.ID)))
					return false
				})
				c := open(t, with(map[string]any{"url": s.URL}))
				action, params := "mcp.s_add", map[string]any{"a": 1}
				switch method {
				case "resources/read":
					action, params = "mcp.read_resource", map[string]any{"server": "s", "uri": "mem://notes"}
				case "tools/list":
					action, params = "mcp.list_tools", map[string]any{"server": "s"}
				default:
					c.must(t, action, params)
				}
				refusing.Store(1)
				_, err := c.call(t.Context(), action, params)
				if (err == nil) != (test.calls == 2) || calls.Load() != test.calls {
					t.Errorf("%s: %d calls, want %d: %v", method, calls.Load(), test.calls, err)
				}
			}
		})
	}
}

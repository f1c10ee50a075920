package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/llm"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/httpapi/servertest"
)

// call runs an action with settings.llm.
func call(t testing.TB, host *teatest.Host, action string, settings, params map[string]any) (map[string]any, *tea.Error) {
	t.Helper()
	if host == nil {
		host = new(teatest.Host)
	}
	if host.Actions == nil {
		host.Actions = map[string]func(context.Context, any) (any, error){}
	}
	host.Actions["secrets.mask"] = func(_ context.Context, params any) (any, error) { return params, nil }
	got, err := teatest.Call(t, llm.Bundle(), teatest.Request{
		Action: action, Params: params, Settings: map[string]any{"llm": settings}, Host: host, Call: tea.Call{IdempotencyKey: "key"},
	})
	if err != nil {
		var e *tea.Error
		if !errors.As(err, &e) {
			t.Fatalf("not a *tea.Error: %v", err)
		}
		return nil, e
	}
	return got.(map[string]any), nil
}

// openAI are settings for a test server.
func openAI(server *servertest.Server) map[string]any {
	return map[string]any{"model": "m", "api_base": server.URL, "api_key": "very-secret-key"}
}

// answerText is a whole answer of an OpenAI-compatible server.
func answerText(text string) servertest.Reply {
	quoted, _ := json.Marshal(text)
	return servertest.Reply{Chunks: []string{`{"model":"m-1","choices":[{"message":{"content":` + string(quoted) + `},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`}}
}

// withoutFields takes away what differs from run to run.
func withoutFields(result map[string]any, fields ...string) map[string]any {
	for _, field := range append(fields, "latency_ms") {
		delete(result, field)
	}
	return result
}

func TestCall(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, answerText("hello"))
	settings := openAI(server)
	settings["prices"] = map[string]any{"m": map[string]any{"input": 2, "output": 20}}
	got, err := call(t, nil, "llm.call", settings, map[string]any{"prompt": "hi", "system": "be brief", "temperature": 0.5})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"success": true, "content": "hello", "finish_reason": "stop", "model": "m-1", "provider": "openai",
		"message": map[string]any{"role": "assistant", "content": "hello"}, "tool_calls": []any{},
		"usage":    map[string]any{"input_tokens": int64(10), "output_tokens": int64(5), "total_tokens": int64(15), "estimated": false},
		"cost_usd": 0.00012,
	}
	if diff := cmp.Diff(want, withoutFields(got)); diff != "" {
		t.Error(diff)
	}
	seen := server.Seen()[0]
	wantBody := map[string]any{"model": "m", "temperature": 0.5, "messages": []any{
		map[string]any{"role": "system", "content": "be brief"}, map[string]any{"role": "user", "content": "hi"},
	}}
	if diff := cmp.Diff(wantBody, seen.Body); diff != "" {
		t.Error(diff)
	}
	if key := seen.Header.Get("Authorization"); key != "Bearer very-secret-key" {
		t.Errorf("key %q", key)
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	chunks := []string{
		`data: {"choices":[{"delta":{"content":"hel"}}]}` + "\n\n", `data: {"choices":[{"delta":{"content":"lo"},"finish_reason":"stop"}]}` + "\n\n",
	}
	for action, params := range map[string]map[string]any{
		"llm.stream": {"prompt": "hi"},
		"llm.call":   {"prompt": "hi", "stream": true},
	} {
		host := &teatest.Host{}
		got, err := call(t, host, action, openAI(servertest.Start(t, servertest.Reply{Chunks: chunks})), params)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"hel", "lo"}, host.Recorded().Tokens); diff != "" {
			t.Errorf("%s: %s", action, diff)
		}
		if got["time_to_first_token_ms"] == nil || got["content"] != "hello" {
			t.Errorf("%s: got %v", action, got)
		}
		usage := map[string]any{"input_tokens": int64(1), "output_tokens": int64(2), "total_tokens": int64(3), "estimated": true}
		if diff := cmp.Diff(usage, got["usage"]); diff != "" {
			t.Errorf("%s: %s", action, diff)
		}
	}
}

func TestAnswerGoesBackAsMessage(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t,
		servertest.Reply{Chunks: []string{`{"choices":[{"message":{"content":null,"tool_calls":[{"id":"c1","function":{"name":"csv_parse","arguments":"{\"text\":\"a\"}"}}]}}]}`}},
		answerText("done"))
	host := &teatest.Host{Actions: map[string]func(context.Context, any) (any, error){"csv.parse": nil}}
	params := map[string]any{"messages": []any{map[string]any{"role": "user", "content": "hi"}}, "tools": []any{"csv.parse"}, "tool_choice": "csv.parse"}
	first, err := call(t, host, "llm.call", openAI(server), params)
	if err != nil {
		t.Fatal(err)
	}
	calls := []any{map[string]any{"id": "c1", "name": "csv.parse", "arguments": map[string]any{"text": "a"}}}
	if diff := cmp.Diff(calls, first["tool_calls"]); diff != "" || first["finish_reason"] != "tool_calls" {
		t.Errorf("%v %s", first["finish_reason"], diff)
	}
	params["messages"] = append(params["messages"].([]any), first["message"], map[string]any{"role": "tool", "tool_call_id": "c1", "content": "b"})
	if _, err := call(t, host, "llm.call", openAI(server), params); err != nil {
		t.Fatal(err)
	}
	sent := server.Seen()[1].Body
	want := []any{
		map[string]any{"role": "user", "content": "hi"},
		map[string]any{"role": "assistant", "content": "", "tool_calls": []any{
			map[string]any{"id": "c1", "type": "function", "function": map[string]any{"name": "csv_parse", "arguments": `{"text":"a"}`}},
		}},
		map[string]any{"role": "tool", "tool_call_id": "c1", "content": "b"},
	}
	if diff := cmp.Diff(want, sent["messages"]); diff != "" {
		t.Error(diff)
	}
	if choice := map[string]any{"type": "function", "function": map[string]any{"name": "csv_parse"}}; !cmp.Equal(choice, sent["tool_choice"]) {
		t.Errorf("tool_choice %v", sent["tool_choice"])
	}
}

func TestWrongParameters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, action     string
		settings, params map[string]any
		contains         string
	}{
		{"nothing to ask", "llm.call", map[string]any{"model": "m"}, nil, "prompt or messages"},
		{"no model", "llm.call", nil, map[string]any{"prompt": "hi"}, "settings.llm.model"},
		{"unknown parameter", "llm.call", nil, map[string]any{"promt": "hi"}, `did you mean "prompt"?`},
		{"unknown provider", "llm.call", map[string]any{"model": "m", "provider": "openay"}, map[string]any{"prompt": "hi"}, `"openai", "openai-responses", "anthropic", "gemini", "ollama", "azure", "command", "replay"`},
		{"unknown setting", "llm.call", map[string]any{"modle": "m"}, map[string]any{"prompt": "hi"}, "modle"},
		{"unknown role", "llm.call", map[string]any{"model": "m"}, map[string]any{"messages": []any{map[string]any{"role": "robot", "content": "x"}}}, "messages[0].role"},
		{"bad part", "llm.call", map[string]any{"model": "m"}, map[string]any{"messages": []any{map[string]any{"role": "user", "content": []any{map[string]any{"type": "video"}}}}}, "content[0]"},
		{"bad schema", "llm.call", map[string]any{"model": "m"}, map[string]any{"prompt": "hi", "schema": map[string]any{"type": 7}}, "schema"},
		{"bad response_format", "llm.call", map[string]any{"model": "m"}, map[string]any{"prompt": "hi", "response_format": "xml"}, "xml"},
		{"azure without address", "llm.call", map[string]any{"model": "m", "provider": "azure"}, map[string]any{"prompt": "hi"}, "api_base"},
		{"empty address", "llm.call", map[string]any{"model": "m"}, map[string]any{"prompt": "hi", "api_base": ""}, "api_base is empty"},
		{"replay without file", "llm.call", map[string]any{"model": "m", "provider": "replay"}, map[string]any{"prompt": "hi"}, "replay.file"},
		{"no tools", "llm.tools", map[string]any{"model": "m"}, map[string]any{"prompt": "hi"}, "needs tools"},
		{"no rounds", "llm.tools", map[string]any{"model": "m"}, map[string]any{"prompt": "hi", "tools": []any{"a.b"}, "max_tool_rounds": 0}, "max_tool_rounds"},
		{"tool without a name", "llm.tools", map[string]any{"model": "m"}, map[string]any{"prompt": "hi", "tools": []any{map[string]any{"description": "x"}}}, "tools[0]"},
		{"no input", "embedding.create", map[string]any{"model": "m"}, nil, `"input"`},
		{"empty input", "embedding.create", map[string]any{"model": "m"}, map[string]any{"input": []any{"a", ""}}, "input[1]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := call(t, nil, c.action, c.settings, c.params)
			if err == nil || err.Type != tea.ValidationError || !strings.Contains(err.Message, c.contains) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The key of the settings belongs to the server of the settings.
func TestKeyGoesOnlyWhereItBelongs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		params map[string]any
		key    string
	}{
		{"settings", nil, "Bearer very-secret-key"},
		{"own key", map[string]any{"api_key": "another-secret"}, "Bearer another-secret"},
		{"own address", map[string]any{"api_base": "OTHER"}, ""},
		{"own address and key", map[string]any{"api_base": "OTHER", "api_key": "another-secret"}, "Bearer another-secret"},
		{"own provider", map[string]any{"api_base": "OTHER", "provider": "ollama", "model": "m"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			reply := answerText("hi")
			if c.params["provider"] == "ollama" {
				reply = servertest.Reply{Chunks: []string{`{"done":true}`}}
			}
			home, other := servertest.Start(t, reply), servertest.Start(t, reply)
			asked := home
			params := map[string]any{"prompt": "hi"}
			for name, v := range c.params {
				params[name] = v
			}
			if params["api_base"] != nil {
				params["api_base"], asked = other.URL, other
			}
			settings := openAI(home)
			settings["headers"] = map[string]any{"X-Token": "header-secret"}
			if _, err := call(t, nil, "llm.call", settings, params); err != nil {
				t.Fatal(err)
			}
			header := asked.Seen()[0].Header
			if got := header.Get("Authorization"); got != c.key {
				t.Errorf("key %q, want %q", got, c.key)
			}
			if token := header.Get("X-Token"); (token != "") != (asked == home) {
				t.Errorf("header %q", token)
			}
		})
	}
}

// A deployment is one model: naming another model must not go there.
func TestDeployments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, action     string
		settings, params map[string]any
		want             string
	}{
		{"of the settings", "llm.call", map[string]any{"deployment": "d"}, map[string]any{"prompt": "hi"}, "d/chat/completions"},
		{"the model's name", "llm.call", map[string]any{"model": "m"}, map[string]any{"prompt": "hi"}, "m/chat/completions"},
		{"the call's model", "llm.call", map[string]any{"model": "m", "deployment": "d"}, map[string]any{"prompt": "hi", "model": "n"}, "n/chat/completions"},
		{"the call's deployment", "llm.call", map[string]any{"model": "m", "deployment": "d"}, map[string]any{"prompt": "hi", "deployment": "e"}, "e/chat/completions"},
		{"embeddings", "embedding.create", map[string]any{"model": "m", "deployment": "d", "embedding_model": "v"}, map[string]any{"input": "a"}, "v/embeddings"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := servertest.Start(t, servertest.Reply{Chunks: []string{`{"choices":[{"message":{"content":"hi"}}],"data":[{"embedding":[1.5]}]}`}})
			c.settings["provider"], c.settings["api_base"] = "azure", server.URL
			if _, err := call(t, nil, c.action, c.settings, c.params); err != nil {
				t.Fatal(err)
			}
			if got := server.Seen()[0].Path; got != "/openai/deployments/"+c.want {
				t.Errorf("asked %s", got)
			}
		})
	}
}

func TestNoSecretInErrors(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"openai", "azure"} {
		server := servertest.Start(t, servertest.Reply{Status: 401, Chunks: []string{`{"error":{"message":"bad very-secret-key, bad header-secret"}}`}})
		settings := openAI(server)
		settings["provider"] = provider
		settings["headers"] = map[string]any{"Proxy-Authorization": "Basic header-secret"}
		_, err := call(t, nil, "llm.call", settings, map[string]any{"prompt": "hi"})
		if err == nil || err.Type != tea.PermissionDenied || err.Message != "HTTP 401: bad ***, bad ***" {
			t.Errorf("%s: got %v", provider, err)
		}
		header, want := server.Seen()[0].Header, map[string]string{"Authorization": "Bearer very-secret-key"}
		if provider == "azure" {
			want = map[string]string{"Api-Key": "very-secret-key", "Authorization": ""}
		}
		for name, text := range want {
			if header.Get(name) != text {
				t.Errorf("%s: %s is %q", provider, name, header.Get(name))
			}
		}
	}
}

func TestRetriesAreLogged(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, servertest.Reply{Status: 503, Header: map[string]string{"Retry-After-Ms": "1"}, Chunks: []string{`{"error":"busy"}`}}, answerText("hi"))
	host := &teatest.Host{}
	if _, err := call(t, host, "llm.call", openAI(server), map[string]any{"prompt": "hi"}); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"attempt": int64(1), "wait_ms": int64(1), "error_type": "connection_error", "error": "HTTP 503: busy"}
	if logs := host.Recorded().Logs; len(logs) != 1 || !cmp.Equal(want, logs[0].Fields) {
		t.Errorf("got %v", logs)
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, servertest.Reply{Then: servertest.Hang})
	_, err := call(t, nil, "llm.call", openAI(server), map[string]any{"prompt": "hi", "timeout_seconds": 0.03})
	if err == nil || err.Type != tea.Timeout || !err.Retryable {
		t.Errorf("got %v", err)
	}
	if len(server.Seen()) > 0 { // on a busy machine the limit may come first
		<-server.Gone
	}
}

func TestReplay(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, answerText("hello"))
	settings := openAI(server)
	settings["provider"] = "replay"
	replay := map[string]any{"file": t.TempDir() + "/answers.jsonl", "record": true}
	settings["replay"] = replay
	params := map[string]any{"prompt": "hi"}
	recorded, err := call(t, nil, "llm.call", settings, params)
	if err != nil {
		t.Fatal(err)
	}
	delete(replay, "record")
	settings["api_base"] = "http://127.0.0.1:1"
	played, err := call(t, nil, "llm.call", settings, params)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(withoutFields(recorded), withoutFields(played)); diff != "" {
		t.Error(diff)
	}
	if n := len(server.Seen()); n != 1 {
		t.Errorf("%d requests", n)
	}
	_, err = call(t, nil, "llm.call", settings, map[string]any{"prompt": "something else"})
	if err == nil || err.Type != tea.NotFound {
		t.Errorf("got %v", err)
	}
}

func TestEmbeddingsComeInBatches(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t,
		servertest.Reply{Chunks: []string{`{"data":[{"embedding":[1.5,2.5]},{"embedding":[3.5,4.5]}],"usage":{"prompt_tokens":4,"total_tokens":4}}`}},
		servertest.Reply{Chunks: []string{`{"data":[{"embedding":[5.5,6.5]}]}`}})
	settings := openAI(server)
	settings["embedding_model"] = "e"
	got, err := call(t, nil, "embedding.create", settings, map[string]any{"input": []any{"a", "b", "four more"}, "batch_size": 2})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"success": true, "embeddings": []any{[]any{1.5, 2.5}, []any{3.5, 4.5}, []any{5.5, 6.5}}, "dimensions": int64(2), "count": int64(3),
		"model": "e", "provider": "openai", "usage": map[string]any{"input_tokens": int64(7), "output_tokens": int64(0), "total_tokens": int64(7), "estimated": true},
	}
	if diff := cmp.Diff(want, withoutFields(got)); diff != "" {
		t.Error(diff)
	}
	if _, err := call(t, nil, "embedding.create", openAI(server), map[string]any{"input": "a", "dimensions": 3}); err == nil || err.Type != tea.ValidationError {
		t.Errorf("dimensions that the server ignores: got %v", err)
	}
}

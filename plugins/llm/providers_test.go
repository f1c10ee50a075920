package llm_test

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/llm/internal/protocoltest"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// protocols are the providers with a double that checks the rules of the vendor.
var protocols = []string{"openai", "openai-responses", "anthropic", "gemini"}

// signed reports whether a provider requires its reasoning back.
func signed(provider string) bool { return provider != "openai" }

// connect returns the settings for a double.
func connect(provider string, server *protocoltest.Server) map[string]any {
	base := server.URL
	if strings.HasPrefix(provider, "openai") {
		base += "/v1"
	}
	return map[string]any{"provider": provider, "model": provider + "-test", "api_base": base, "api_key": protocoltest.Key, "max_retries": 0}
}

// media are the parts of a message with an image and a file.
func media() []any {
	return []any{
		map[string]any{"type": "text", "text": "what is this?"},
		map[string]any{"type": "image", "data": "aW1hZ2U=", "media_type": "image/png"},
		map[string]any{"type": "file", "data": base64.StdEncoding.EncodeToString([]byte("%PDF-1.4")), "media_type": "application/pdf", "filename": "a.pdf"},
	}
}

func addCall(id string) protocoltest.Call {
	return protocoltest.Call{ID: id, Name: "math_add", Arguments: `{"x":2,"y":3}`}
}

// A whole conversation with each provider: media, reasoning that goes back unchanged,
// tools, and counts of tokens.
func TestConversationWithEachProvider(t *testing.T) {
	t.Parallel()
	for _, provider := range protocols {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprint(provider, " stream ", stream), func(t *testing.T) {
				t.Parallel()
				reasoning := ""
				if signed(provider) {
					reasoning = "I must add"
				}
				server := protocoltest.Start(t, provider,
					protocoltest.Step{Reasoning: reasoning, Text: "let me add", Calls: []protocoltest.Call{addCall("call_1"), addCall("call_2")}},
					protocoltest.Step{Reasoning: reasoning, Text: "five ✓"},
				)
				host := adder()
				got, err := call(t, host, "llm.tools", connect(provider, server), map[string]any{
					"system": "be brief", "messages": []any{map[string]any{"role": "user", "content": media()}}, "tools": []any{"math.add"}, "stream": stream,
				})
				if err != nil {
					t.Fatal(err)
				}
				think, file := []string{"think: I must add"}, "file: application/pdf a.pdf"
				switch provider {
				case "openai":
					think = nil
				case "gemini": // takes the signature, not the text, and no names of files
					think, file = nil, "file: application/pdf"
				}
				want := slices.Concat([]string{"system: be brief", "user: what is this?", "image: image/png", file}, think,
					[]string{"model: let me add", `call: math_add {"x":2,"y":3}`, `call: math_add {"x":2,"y":3}`, `result: {"sum":5}`, `result: {"sum":5}`})
				seen := server.Seen()
				if diff := gocmp.Diff(want, seen[len(seen)-1].Talk); diff != "" {
					t.Error(diff)
				}
				if got["content"] != "five ✓" || got["finish_reason"] != "stop" || got["provider"] != provider || cmp.Or(got["reasoning"], any("")) != any(reasoning) {
					t.Errorf("got %v", got)
				}
				if text := host.Recorded().Text(); stream && text != "let me addfive ✓" {
					t.Errorf("tokens %q", text)
				}
				usage := got["usage"].(map[string]any)
				if usage["input_tokens"] != int64(200) || usage["output_tokens"] != int64(10) || usage["cached_tokens"] != int64(120) || usage["estimated"] != false {
					t.Errorf("usage %v", usage)
				}
				// The conversation of the result continues in another call.
				server2 := protocoltest.Start(t, "openai", protocoltest.Step{Text: "bye"})
				again, err := call(t, nil, "llm.call", connect("openai", server2), map[string]any{"messages": got["messages"], "prompt": "thanks"})
				if err != nil || again["content"] != "bye" {
					t.Errorf("the conversation at another provider: %v, %v", again, err)
				}
				again, err = call(t, nil, "llm.call", connect(provider, server), map[string]any{"messages": got["messages"], "prompt": "thanks"})
				if err != nil {
					t.Errorf("the conversation at the same provider: %v, %v", again, err)
				}
			})
		}
	}
}

// The conversation moves to another provider between a tool's result and the answer.
func TestFallbackInTheMiddleOfAConversation(t *testing.T) {
	t.Parallel()
	for _, from := range protocols {
		for _, to := range protocols {
			t.Run(from+" to "+to, func(t *testing.T) {
				t.Parallel()
				reasoning, id := "", "functions.add:0/é"+strings.Repeat("x", 80)
				if signed(from) {
					reasoning, id = "hm", "toolu_1"
				}
				first := protocoltest.Start(t, from,
					protocoltest.Step{Reasoning: reasoning, Calls: []protocoltest.Call{addCall(id)}},
					protocoltest.Step{Status: 503, Message: "down"},
				)
				second := protocoltest.Start(t, to, protocoltest.Step{Text: "five"})
				settings := connect(from, first)
				settings["extra"] = map[string]any{"metadata": nil}
				settings["fallbacks"] = []any{connect(to, second)}
				got, err := call(t, adder(), "llm.tools", settings, map[string]any{"prompt": "add", "tools": []any{"math.add"}})
				if err != nil {
					t.Fatal(err)
				}
				if got["content"] != "five" || got["provider"] != to {
					t.Errorf("got %v", got)
				}
				want := []string{"user: add", `call: math_add {"x":2,"y":3}`, `result: {"sum":5}`}
				if diff := gocmp.Diff(want, second.Seen()[0].Talk); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// A failure of each provider has the same type, says whether to retry, and contains no key.
func TestFailuresOfEachProvider(t *testing.T) {
	t.Parallel()
	for _, provider := range protocols {
		for _, c := range []struct {
			name      string
			step      protocoltest.Step
			key       string
			kind      tea.ErrorType
			retryable bool
			requests  int
		}{
			{"wrong key", protocoltest.Step{}, "another-secret-key", tea.PermissionDenied, false, 1},
			{"no such model", protocoltest.Step{Status: 404, Message: "no model"}, "", tea.NotFound, false, 1},
			{"no tools", protocoltest.Step{Status: 400, Message: "tools are not supported by this model"}, "", tea.ValidationError, false, 1},
			{"rate limit", protocoltest.Step{Status: 429, Message: "slow down"}, "", tea.RateLimited, true, 2},
			{"rate limit, soon", protocoltest.Step{Status: 429, Header: map[string]string{"Retry-After": "0.001"}}, "", tea.RateLimited, true, 2},
			{"rate limit, tomorrow", protocoltest.Step{Status: 429, Header: map[string]string{"Retry-After": "86400"}}, "", tea.RateLimited, false, 1},
			{"overloaded", protocoltest.Step{Status: 529, Message: "Overloaded"}, "", tea.ConnectionError, true, 2},
			{"overloaded, soon", protocoltest.Step{Status: 529, Header: map[string]string{"Retry-After": "0.001"}}, "", tea.ConnectionError, true, 2},
			{"not to be retried", protocoltest.Step{Status: 500, Header: map[string]string{"X-Should-Retry": "false"}}, "", tea.ConnectionError, false, 1},
		} {
			t.Run(provider+" "+c.name, func(t *testing.T) {
				t.Parallel()
				server := protocoltest.Start(t, provider, c.step)
				settings := connect(provider, server)
				settings["max_retries"] = 1
				settings["api_key"] = cmp.Or(c.key, protocoltest.Key)
				host := adder()
				_, err := call(t, host, "llm.call", settings, map[string]any{"prompt": "hi", "tools": []any{"math.add"}})
				if err == nil || err.Type != c.kind || err.Retryable != c.retryable {
					t.Fatalf("got %#v", err)
				}
				if n := len(server.Seen()); n != c.requests {
					t.Errorf("%d requests, want %d", n, c.requests)
				}
				if all := fmt.Sprintf("%#v %v", err, host.Recorded()); strings.Contains(all, "secret-key") {
					t.Errorf("a key in %s", all)
				}
			})
		}
	}
}

// A stream that ends in the middle, or with an error, is a retryable failure that counts
// the tokens that were sent.
func TestStreamThatEndsInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, provider := range protocols {
		if provider == "openai" {
			continue // package openai has these
		}
		for _, step := range []protocoltest.Step{{Text: "hello there", Cut: true}, {Text: "hello there", FailLate: true}} {
			t.Run(fmt.Sprint(provider, " late failure ", step.FailLate), func(t *testing.T) {
				t.Parallel()
				server := protocoltest.Start(t, provider, step)
				settings := connect(provider, server)
				settings["max_retries"] = 3
				host := new(teatest.Host)
				_, err := call(t, host, "llm.stream", settings, map[string]any{"prompt": "hi"})
				if err == nil || err.Type != tea.ConnectionError || !err.Retryable || err.Details["tokens"] == nil {
					t.Fatalf("got %#v", err)
				}
				if n := len(server.Seen()); n != 1 || !strings.HasPrefix(host.Recorded().Text(), "hello") {
					t.Errorf("%d requests, tokens %q", n, host.Recorded().Text())
				}
			})
		}
	}
}

// provider/model is one string for a call, a fallback and an embedding, and the key goes
// only to the server that it was set for.
func TestModelWithItsProvider(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings, params map[string]any
		provider         string // that is asked
		model            string
	}{
		"a provider of the settings": {map[string]any{"model": "anthropic/claude-test"}, nil, "anthropic", "claude-test"},
		"in a call":                  {map[string]any{"model": "m", "api_base": "http://127.0.0.1:1", "api_key": "other-secret"}, map[string]any{"model": "anthropic/claude-test"}, "anthropic", "claude-test"},
		"a fallback":                 {map[string]any{"model": "m", "api_base": "http://127.0.0.1:1", "max_retries": 0, "fallbacks": []any{"anthropic/claude-test"}}, nil, "anthropic", "claude-test"},
		"a connection with a name":   {map[string]any{"model": "gateway/anthropic/claude-test"}, nil, "openai", "anthropic/claude-test"},
		"a name with a slash":        {map[string]any{"model": "deepseek/r1", "provider": "openai", "api_base": "openai"}, nil, "openai", "deepseek/r1"},
		"the name of a gateway":      {map[string]any{"model": "gemini/x", "api_base": "openai"}, nil, "openai", "gemini/x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := map[string]*protocoltest.Server{}
			for _, p := range []string{"openai", "anthropic"} {
				servers[p] = protocoltest.Start(t, p, protocoltest.Step{Text: "hello"})
			}
			settings := map[string]any{"max_retries": 0}
			maps.Copy(settings, c.settings)
			if settings["api_base"] == "openai" {
				settings["api_base"], settings["api_key"] = servers["openai"].URL+"/v1", protocoltest.Key
			}
			settings["providers"] = map[string]any{
				"anthropic": map[string]any{"api_base": servers["anthropic"].URL, "api_key": protocoltest.Key},
				"gateway":   map[string]any{"api_base": servers["openai"].URL + "/v1", "api_key": protocoltest.Key},
			}
			params := map[string]any{"prompt": "hi"}
			maps.Copy(params, c.params)
			if _, err := call(t, nil, "llm.call", settings, params); err != nil {
				t.Fatal(err)
			}
			for p, server := range servers {
				seen := server.Seen()
				if want := p == c.provider; len(seen) > 0 != want {
					t.Errorf("%s got %d requests", p, len(seen))
				} else if want && seen[0].Body["model"] != c.model {
					t.Errorf("model %v", seen[0].Body["model"])
				}
			}
		})
	}
	_, err := call(t, nil, "llm.call", map[string]any{"model": "gpt-x", "api_key": "private-key"}, map[string]any{"prompt": "hi", "model": "anthropic/claude-test"})
	if err == nil || err.Type != tea.ValidationError || !strings.Contains(err.Message, "settings.llm.providers.anthropic.api_key") {
		t.Errorf("without a key: %v", err)
	}
	// The prompt for an unknown provider would go to OpenAI.
	for _, settings := range []map[string]any{{"model": "groq/llama-4"}, {"model": "m", "fallbacks": []any{"groq/llama-4"}}, {"model": "openai-responses/groq/llama-4"}} {
		_, err := call(t, nil, "llm.call", settings, map[string]any{"prompt": "private"})
		if err == nil || err.Type != tea.ValidationError || !strings.Contains(err.Message, "settings.llm.providers.groq") {
			t.Errorf("an unknown provider: %v", err)
		}
	}
}

// The built-in table has the prices of the vendors' servers, and a file replaces it.
func TestPricesOfTheTable(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "models.json")
	const own = `{"models": {"anthropic/claude-sonnet-4-5": {"input": 1, "output": 10, "cached_input": 0.1, "cache_write": 2, "cache_write_long": 4}, "anthropic/long": {"input": 1, "above": {"tokens": 99, "input": 100}}}}`
	if err := os.WriteFile(file, []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	server := protocoltest.Start(t, "anthropic", protocoltest.Step{Text: "hi"}) // 10 tokens, 20 and 10 written, 60 cached, 5 output
	for name, c := range map[string]struct {
		model  string
		models string
		prices map[string]any
		want   any
	}{
		"another server's own price": {"claude-sonnet-4-5", "", nil, nil},
		"a file":                     {"claude-sonnet-4-5", file, nil, (10 + 20*2 + 10*4 + 60*0.1 + 5*10) / 1e6},
		"a dated version":            {"claude-sonnet-4-5-20250929", file, nil, (10 + 20*2 + 10*4 + 60*0.1 + 5*10) / 1e6},
		"a long input":               {"long", file, nil, 100 * 100 / 1e6},
		"an unknown model":           {"claude-x", file, nil, nil},
		"prices of the settings":     {"claude-sonnet-4-5", file, map[string]any{"anthropic/claude-sonnet-4-5": map[string]any{"input": 1}}, 100 / 1e6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := connect("anthropic", server)
			settings["model"], settings["prices"] = c.model, c.prices
			if c.models != "" {
				settings["models"] = c.models
			}
			got, err := call(t, nil, "llm.call", settings, map[string]any{"prompt": "hi"})
			if err != nil || got["cost_usd"] != c.want {
				t.Errorf("got %v, %v, want %v", got["cost_usd"], err, c.want)
			}
		})
	}
	for text, want := range map[string]string{"": "read settings.llm.models", "{}": "has no models", "[": "not a table"} {
		path := filepath.Join(t.TempDir(), "bad.json")
		if text != "" {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := call(t, nil, "llm.call", map[string]any{"model": "m", "models": path}, map[string]any{"prompt": "hi"}); err == nil || !strings.Contains(err.Message, want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The vendor's limits for the cache of the prompt, for structured answers and for
// parameters that the protocol does not have.
func TestAnthropicRequest(t *testing.T) {
	t.Parallel()
	schema := map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}}, "required": []any{"n"}, "additionalProperties": false}
	server := protocoltest.Start(t, "anthropic", protocoltest.Step{Text: `{"n":1}`})
	settings := connect("anthropic", server)
	settings["prompt_cache"] = "1h"
	got, err := call(t, nil, "llm.call", settings, map[string]any{"system": "s", "prompt": "hi", "schema": schema, "seed": 7, "temperature": 1.5, "stop": "x", "top_p": 0.5})
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff([]any{"seed"}, got["not_sent"]); diff != "" || fmt.Sprint(got["data"]) != "map[n:1]" {
		t.Errorf("data %v, %s", got["data"], diff)
	}
	mark := map[string]any{"type": "ephemeral", "ttl": "1h"}
	want := map[string]any{
		"model": "anthropic-test", "max_tokens": 4096.0, "temperature": 1.0, "top_p": 0.5, "stop_sequences": []any{"x"},
		"system":        []any{map[string]any{"type": "text", "text": "s", "cache_control": mark}},
		"messages":      []any{map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": "hi", "cache_control": mark}}}},
		"output_config": map[string]any{"format": map[string]any{"type": "json_schema", "schema": schema}},
	}
	if diff := gocmp.Diff(want, server.Seen()[0].Body); diff != "" {
		t.Error(diff)
	}
	// Thinking that the conversation of another provider lacks is not requested.
	talk := []any{
		map[string]any{"role": "user", "content": "add"},
		map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"id": "c1", "name": "math_add", "arguments": map[string]any{}}}},
		map[string]any{"role": "tool", "tool_call_id": "c1", "content": ""},
	}
	settings["extra"] = map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": 1024}}
	if _, err := call(t, nil, "llm.call", settings, map[string]any{"messages": talk, "response_format": "json"}); err != nil {
		t.Fatal(err)
	}
	if body := server.Seen()[1].Body; body["thinking"] != nil || !strings.Contains(fmt.Sprint(body["system"]), "JSON only") {
		t.Errorf("body %v", body)
	}
	for _, part := range []any{map[string]any{"type": "file", "data": "eA==", "media_type": "application/zip"}, map[string]any{"type": "file", "data": "?", "media_type": "text/plain"}} {
		_, err := call(t, nil, "llm.call", settings, map[string]any{"messages": []any{map[string]any{"role": "user", "content": []any{part}}}})
		if err == nil || err.Type != tea.ValidationError {
			t.Errorf("%v: %v", part, err)
		}
	}
	if _, err := call(t, nil, "embedding.create", settings, map[string]any{"input": "a"}); err == nil || !strings.Contains(err.Message, "anthropic has no embeddings") {
		t.Errorf("embedding: %v", err)
	}
}

// A recording of each provider plays without a server, with its reasoning and its counts.
func TestRecordingOfEachProvider(t *testing.T) {
	t.Parallel()
	for _, provider := range protocols {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			reasoning := ""
			if signed(provider) {
				reasoning = "hm"
			}
			server := protocoltest.Start(t, provider,
				protocoltest.Step{Reasoning: reasoning, Calls: []protocoltest.Call{addCall("call_1")}}, protocoltest.Step{Reasoning: reasoning, Text: "five"},
			)
			file := filepath.Join(t.TempDir(), "answers.jsonl")
			params := map[string]any{"prompt": "add", "tools": []any{"math.add"}, "stream": true}
			settings := connect(provider, server)
			settings["provider"], settings["model"] = "replay", provider+"-test"
			settings["replay"] = map[string]any{"file": file, "record": true, "provider": provider}
			want, err := call(t, adder(), "llm.tools", settings, params)
			if err != nil {
				t.Fatal(err)
			}
			raw, readErr := os.ReadFile(file)
			if readErr != nil || strings.Contains(string(raw), protocoltest.Key) {
				t.Errorf("the recording: %v\n%s", readErr, raw)
			}
			offline := map[string]any{"provider": "replay", "model": provider + "/" + provider + "-test", "replay": map[string]any{"file": file}}
			if provider == "openai" {
				offline["model"] = "openai-test"
			}
			host := adder()
			got, err := call(t, host, "llm.tools", offline, params)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range []map[string]any{want, got} {
				withoutFields(r, "time_to_first_token_ms", "tool_results")
			}
			if diff := gocmp.Diff(want, got); diff != "" || host.Recorded().Text() != "five" {
				t.Errorf("tokens %q, %s", host.Recorded().Text(), diff)
			}
			if n := len(server.Seen()); n != 2 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

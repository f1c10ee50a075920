package openai

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
	"github.com/the-edge-agent/tea/sdk/x/httpapi/servertest"
)

func TestAnswersThatAreNotStreamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body string
		want       chat.Answer
	}{
		{
			"text", `{"model":"m-2","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`,
			chat.Answer{Model: "m-2", Text: "hi", FinishReason: "stop", Usage: &chat.Usage{InputTokens: 1, OutputTokens: 2, TotalTokens: 3}},
		},
		{
			"null content and calls, finish_reason stop", `{"choices":[{"message":{"content":null,"tool_calls":[{"id":"c","function":{"name":"a","arguments":{"x":1}}},{"id":"d","function":{"name":"a","arguments":"{}"}}]},"finish_reason":"stop"}]}`,
			chat.Answer{ToolCalls: []chat.ToolCall{{ID: "c", Name: "a", Arguments: `{"x":1}`}, {ID: "d", Name: "a", Arguments: `{}`}}, FinishReason: "tool_calls"},
		},
		{
			"one id for all calls", `{"choices":[{"message":{"tool_calls":[{"id":"c","function":{"name":"a","arguments":"{}"}},{"id":"c","function":{"name":"b"}},{"id":"c","function":{"name":"a","arguments":"{}"}}]}}]}`,
			chat.Answer{ToolCalls: []chat.ToolCall{{ID: "c", Name: "a", Arguments: `{}`}, {ID: "c", Name: "b"}, {ID: "c", Name: "a", Arguments: `{}`}}, FinishReason: "tool_calls"},
		},
		{"streamed without being asked", "data: {\"choices\":[{\"delta\":{\"content\":\"h\"}}]}\r\n\r\n" + say("i") + stop + done, chat.Answer{Text: "hi", FinishReason: "stop"}},
		{"no finish_reason", `{"choices":[{"message":{"content":"hi"}}]}`, chat.Answer{Text: "hi", FinishReason: "stop"}},
		{
			"parts and thinking", `{"choices":[{"message":{"content":[{"type":"text","text":"hi"}],"reasoning_content":"hm"},"finish_reason":"stop"}]}`,
			chat.Answer{Text: "hi", Reasoning: "hm", FinishReason: "stop", Extra: map[string]any{"reasoning_content": "hm"}},
		},
		{"refusal", `{"choices":[{"message":{"content":null,"refusal":"no"},"finish_reason":"stop"}]}`, chat.Answer{Text: "no", FinishReason: "refusal"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, _ := connect(t, servertest.Reply{Chunks: []string{c.body}})
			got, err := p.Chat(t.Context(), hello(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnswersThatAreErrors(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]tea.ErrorType{
		`{"error":{"message":"x","code":"model_not_found"}}`:                           tea.NotFound,
		`{"error":{"message":"filtered","code":"content_filter","innererror":{}}}`:     httpapi.ContentFiltered,
		`{"choices":[{"message":{"content":"` + strings.Repeat("a", 1<<16+1) + `"}}]}`: tea.ResourceExhausted,
		`{"choices":[{"message":{"content":"` + strings.Repeat(" ", 1<<18) + `"}}]}`:   tea.ResourceExhausted,
		``:               tea.ConnectionError,
		`{"choices":[]}`: tea.ConnectionError,
		`{}`:             tea.ConnectionError,
		`hello`:          tea.ConnectionError,
		`[]`:             tea.ConnectionError,
	} {
		p, _ := connect(t, servertest.Reply{Chunks: []string{body}})
		_, err := p.Chat(t.Context(), hello(), nil)
		if e := tea.AsError(err); e == nil || e.Type != want {
			t.Errorf("%.80s: got %v, want %s", body, err, want)
		}
	}
}

// A login page or a router's, where the address belongs to something else.
func TestWebPageInsteadOfAnAnswer(t *testing.T) {
	t.Parallel()
	p, _ := connect(t, servertest.Reply{Chunks: []string{"<!DOCTYPE html><html><title>Log in</title></html>"}})
	_, err := p.Chat(t.Context(), hello(), nil)
	if e := tea.AsError(err); e == nil || e.Type != tea.ConnectionError || !strings.Contains(e.Message, `a web page ("Log in")`) {
		t.Errorf("got %v", err)
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	p, server := connect(t, servertest.Reply{Chunks: []string{say("a") + stop}})
	zero, seed := 0.0, int64(7)
	req := &chat.Request{
		Model: "m",
		Messages: []chat.Message{
			chat.Text("system", "be brief"),
			{Role: "user", Content: chat.Content{{Text: "what is it?"}, {Image: "data:image/png;base64,AAAA"}}},
			{Role: "assistant", ToolCalls: []chat.ToolCall{{ID: "c1", Name: "look", Arguments: `{"x":1}`}, {ID: "c2", Name: "look", Arguments: `{"x":`}, {ID: "c3", Name: "look", Arguments: `null`}}},
			{Role: "tool", ToolCallID: "c1", Content: chat.Content{{Text: "a cat"}}},
		},
		Temperature: &zero, Seed: &seed, MaxTokens: 9, Stop: []string{"END"},
		Tools: []chat.Tool{{Name: "look", Description: "Looks.", Parameters: map[string]any{"type": "object"}}}, ToolChoice: "look",
		Format: &chat.Format{Schema: map[string]any{"type": "object", "properties": map[string]any{}, "additionalProperties": false}},
		Extra:  map[string]any{"stream_options": nil, "top_k": 3, "response_format": map[string]any{"json_schema": map[string]any{"name": "cat"}}},
	}
	if _, err := p.Chat(t.Context(), req, func(chat.Delta) {}); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"model": "m", "stream": true, "temperature": 0.0, "seed": 7.0, "max_tokens": 9.0, "stop": []any{"END"}, "top_k": 3.0,
		"messages": []any{
			map[string]any{"role": "system", "content": "be brief"},
			map[string]any{"role": "user", "content": []any{
				map[string]any{"type": "text", "text": "what is it?"},
				map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64,AAAA"}},
			}},
			map[string]any{"role": "assistant", "content": "", "tool_calls": []any{
				map[string]any{"id": "c1", "type": "function", "function": map[string]any{"name": "look", "arguments": `{"x":1}`}},
				map[string]any{"id": "c2", "type": "function", "function": map[string]any{"name": "look", "arguments": `{}`}},
				map[string]any{"id": "c3", "type": "function", "function": map[string]any{"name": "look", "arguments": `{}`}},
			}},
			map[string]any{"role": "tool", "tool_call_id": "c1", "content": "a cat"},
		},
		"tools":       []any{map[string]any{"type": "function", "function": map[string]any{"name": "look", "description": "Looks.", "parameters": map[string]any{"type": "object"}}}},
		"tool_choice": map[string]any{"type": "function", "function": map[string]any{"name": "look"}},
		"response_format": map[string]any{"type": "json_schema", "json_schema": map[string]any{
			"name": "cat", "strict": true, "schema": map[string]any{"type": "object", "properties": map[string]any{}, "additionalProperties": false},
		}},
	}
	if diff := cmp.Diff(want, server.Seen()[0].Body); diff != "" {
		t.Error(diff)
	}
	if path := server.Seen()[0].Path; path != "/v1/chat/completions" {
		t.Errorf("path %s", path)
	}
}

func TestStrictOnlyWhereTheSchemaIs(t *testing.T) {
	t.Parallel()
	closed := func(required ...any) map[string]any {
		return map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{}}, "required": required, "additionalProperties": false}
	}
	for name, c := range map[string]struct {
		schema any
		want   bool
	}{
		"closed":        {closed("a"), true},
		"open":          {map[string]any{"type": "object"}, false},
		"optional":      {closed(), false},
		"open inside":   {map[string]any{"type": "array", "items": map[string]any{"type": "object"}}, false},
		"closed inside": {map[string]any{"anyOf": []any{closed("a")}}, true},
	} {
		if got := IsStrict(c.schema); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestAzure(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, servertest.Reply{Chunks: []string{`{"choices":[{"message":{"content":"hi"}}]}`}},
		servertest.Reply{Chunks: []string{`{"data":[{"embedding":[1,2]}]}`}})
	p := NewAzure(&httpapi.Server{HTTP: servertest.HTTP(t), Base: server.URL + "/"}, "my/model", "2024-10-21")
	if _, err := p.Chat(t.Context(), hello(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Embed(t.Context(), &chat.EmbedRequest{Model: "m", Input: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"/openai/deployments/my%2Fmodel/chat/completions", "/openai/deployments/my%2Fmodel/embeddings"} {
		if got := server.Seen()[i]; got.Path != want || got.Query != "api-version=2024-10-21" {
			t.Errorf("got %s?%s", got.Path, got.Query)
		}
	}
}

func TestEmbeddings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body string
		want       *chat.Embeddings // nil: an error
	}{
		{
			"in order of index", `{"model":"e","data":[{"index":1,"embedding":[3,4]},{"index":0,"embedding":[1,2]}],"usage":{"prompt_tokens":5,"total_tokens":5}}`,
			&chat.Embeddings{Model: "e", Vectors: [][]float64{{1, 2}, {3, 4}}, Usage: &chat.Usage{InputTokens: 5, TotalTokens: 5}},
		},
		{"without index", `{"data":[{"embedding":[1,2]},{"embedding":[3,4]}]}`, &chat.Embeddings{Vectors: [][]float64{{1, 2}, {3, 4}}}},
		{"in base64", `{"data":[{"index":"1","embedding":"AABAQAAAgEA="},{"index":0,"embedding":"AACAPwAAAEA="}]}`, &chat.Embeddings{Vectors: [][]float64{{1, 2}, {3, 4}}}},
		{"cut base64", `{"data":[{"embedding":"AABAQAAAgA=="},{"embedding":[1]}]}`, nil},
		{"NaN in base64", `{"data":[{"embedding":"AADAfw=="},{"embedding":[1]}]}`, nil},
		{"text that is not base64", `{"data":[{"embedding":"oops!"},{"embedding":[1]}]}`, nil},
		{"null in a list", `{"data":[{"embedding":[1,null]},{"embedding":[1,2]}]}`, nil},
		{"one is missing", `{"data":[{"index":0,"embedding":[1,2]}]}`, nil},
		{"index out of range", `{"data":[{"index":-1,"embedding":[1,2]},{"index":9,"embedding":[1,2]}]}`, nil},
		{"error", `{"error":{"message":"x"}}`, nil},
		{"no JSON", `x`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, server := connect(t, servertest.Reply{Chunks: []string{c.body}})
			got, err := p.Embed(t.Context(), &chat.EmbedRequest{Model: "e", Input: []string{"a", "b"}, Dimensions: 2})
			if c.want == nil {
				if err == nil {
					t.Errorf("got %v", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			want := map[string]any{"model": "e", "input": []any{"a", "b"}, "dimensions": 2.0}
			if diff := cmp.Diff(want, server.Seen()[0].Body); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInvalidAddressIsRefused(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"localhost:8080/v1", "ftp://host", "http://", "http://a b", ""} {
		p := New(&httpapi.Server{HTTP: servertest.HTTP(t), Base: base})
		_, err := p.Chat(t.Context(), hello(), nil)
		if e := tea.AsError(err); e == nil || e.Type != tea.ValidationError || !strings.Contains(e.Message, "api_base") {
			t.Errorf("%q: got %v", base, err)
		}
	}
}

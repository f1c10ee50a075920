package gemini

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
	"github.com/the-edge-agent/tea/sdk/x/httpapi/servertest"
)

func ask(t testing.TB, stream bool, reply servertest.Reply) (*chat.Answer, *tea.Error, string) {
	t.Helper()
	server := servertest.Start(t, reply)
	p := New(&httpapi.Server{HTTP: servertest.HTTP(t), Base: server.URL, MaxAnswer: 1 << 16})
	var said strings.Builder
	var emit func(chat.Delta)
	if stream {
		emit = func(d chat.Delta) { said.WriteString(d.Text) }
	}
	answer, err := p.Chat(t.Context(), &chat.Request{Model: "m", Messages: []chat.Message{chat.Text("user", "hi")}}, emit)
	if err != nil {
		return nil, tea.AsError(err), said.String()
	}
	return answer, nil, said.String()
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	candidate := func(parts, finish string) string {
		return `{"candidates":[{"content":{"parts":[` + parts + `]},"finishReason":"` + finish + `"},{"index":1,"content":{"parts":[{"text":"no"}]}}]}`
	}
	signed := func(items ...any) map[string]any {
		return map[string]any{"turn": map[string]any{"provider": "gemini", "items": items}}
	}
	for _, c := range []struct {
		name, body string
		want       chat.Answer
	}{
		{"cut off", candidate(`{"text":"a"},{"text":"b"}`, "MAX_TOKENS"), chat.Answer{Text: "ab", FinishReason: "length"}},
		{"filtered", candidate(``, "SAFETY"), chat.Answer{FinishReason: "content_filter"}},
		{"a malformed call", candidate(``, "MALFORMED_FUNCTION_CALL"), chat.Answer{FinishReason: "MALFORMED_FUNCTION_CALL"}},
		{"a thought", candidate(`{"text":"hm","thought":true},{"text":"a"}`, "STOP"), chat.Answer{Text: "a", Reasoning: "hm", FinishReason: "stop"}},
		{"a signature at the end", candidate(`{"text":"a"},{"text":"","thoughtSignature":"s"}`, "STOP"), chat.Answer{Text: "a", FinishReason: "stop", Extra: signed(
			map[string]any{"text": true}, map[string]any{"own": map[string]any{"thoughtSignature": "s"}})}},
		{"code", candidate(`{"executableCode":{"code":"1"}},{"text":"a"}`, "STOP"), chat.Answer{Text: "a", FinishReason: "stop", Extra: signed(
			map[string]any{"own": map[string]any{"part": map[string]any{"executableCode": map[string]any{"code": "1"}}}}, map[string]any{"text": true})}},
		{"a call without an id", candidate(`{"functionCall":{"name":"f"}}`, "STOP"), chat.Answer{ToolCalls: []chat.ToolCall{{Name: "f"}}, FinishReason: "tool_calls"}},
	} {
		for _, stream := range []bool{false, true} {
			got, err, _ := ask(t, stream, servertest.Reply{Chunks: []string{c.body}})
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			} else if diff := cmp.Diff(&c.want, got); diff != "" {
				t.Errorf("%s, stream %v: %s", c.name, stream, diff)
			}
		}
	}
}

func TestFailuresInAnswers(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]tea.ErrorType{
		`{"promptFeedback":{"blockReason":"SAFETY"}}`:                                                                  httpapi.ContentFiltered,
		`{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`:                                                        tea.ConnectionError, // no end
		`{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}`:                                        tea.RateLimited,
		`[{"error":{"code":503,"message":"down","status":"UNAVAILABLE"}}]`:                                             tea.ConnectionError,
		`{"candidates":[{"content":{"parts":[7]},"finishReason":"STOP"}]}`:                                             tea.ConnectionError,
		`{"candidates":[{"content":{"parts":[{"text":"` + strings.Repeat("a", 1<<17) + `"}]},"finishReason":"STOP"}]}`: tea.ResourceExhausted,
	} {
		for _, stream := range []bool{false, true} {
			if _, err, _ := ask(t, stream, servertest.Reply{Chunks: []string{body}}); err == nil || err.Type != want {
				t.Errorf("stream %v, %.80s: %v", stream, body, err)
			}
		}
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	seed, half := int64(1), 0.5
	req := &chat.Request{
		Temperature: &half, TopP: &half, MaxTokens: 9, Stop: []string{"x"}, Seed: &seed, ToolChoice: "required",
		Format: &chat.Format{Schema: map[string]any{"type": "object"}}, Tools: []chat.Tool{{Name: "f", Parameters: map[string]any{}}},
		Messages: []chat.Message{
			{Role: "user", Content: chat.Content{{Text: "a"}, {File: "https://x/a.pdf"}}},
			{Role: "assistant", ToolCalls: []chat.ToolCall{{ID: "1", Name: "f", Arguments: "[1]"}, {ID: "2", Name: "g"}}},
			{Role: "tool", ToolCallID: "1", Content: chat.Content{{Text: "[1,2]"}}},
			{Role: "tool", ToolCallID: "2", Content: chat.Content{{Text: "plain"}}},
		},
	}
	object := func(pairs ...any) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1]
		}
		return m
	}
	want := object(
		"contents", []any{
			object("role", "user", "parts", []any{object("text", "a"), object("fileData", object("fileUri", "https://x/a.pdf"))}),
			object("role", "model", "parts", []any{
				object("functionCall", object("name", "f", "args", object()), "thoughtSignature", noSignature), object("functionCall", object("name", "g", "args", object())),
			}),
			object("role", "user", "parts", []any{
				object("functionResponse", object("name", "f", "response", object("result", []any{int64(1), int64(2)}))),
				object("functionResponse", object("name", "g", "response", object("result", "plain"))),
			}),
		},
		"generationConfig", object("temperature", half, "topP", half, "maxOutputTokens", 9, "stopSequences", []string{"x"}, "seed", seed, "responseMimeType", "application/json", "responseJsonSchema", object("type", "object")),
		"tools", []any{object("functionDeclarations", []any{object("name", "f", "description", "", "parametersJsonSchema", object())})},
		"toolConfig", object("functionCallingConfig", object("mode", "ANY")),
	)
	if diff := cmp.Diff(want, toBody(req)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(object("mode", "ANY", "allowedFunctionNames", []any{"f"}), toChoice("f")); diff != "" {
		t.Error(diff)
	}
}

func TestEmbeddings(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t, servertest.Reply{Chunks: []string{`{"embeddings":[{"values":[1,2]},{"values":[3,4]}]}`}}, servertest.Reply{Chunks: []string{`{"embeddings":[]}`}})
	p := New(&httpapi.Server{HTTP: servertest.HTTP(t), Base: server.URL})
	req := &chat.EmbedRequest{Model: "models/e", Input: []string{"a", "b"}, Dimensions: 2}
	got, err := p.Embed(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]float64{{1, 2}, {3, 4}}, got.Vectors); diff != "" || server.Seen()[0].Path != "/v1beta/models/e:batchEmbedContents" {
		t.Error(diff, server.Seen()[0].Path)
	}
	if _, err := p.Embed(t.Context(), req); err == nil || !strings.Contains(err.Error(), "0 embeddings for 2 inputs") {
		t.Errorf("got %v", err)
	}
}

// No event of a hostile server ends the process, and an answer within its limit stays one.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{
		`{"candidates":[{"content":{"parts":[{"text":"a","thought":true,"thoughtSignature":"s"},{"text":"b"},{"functionCall":{"name":"f"}}]},"finishReason":"STOP"}]}`,
		`{"usageMetadata":{"promptTokenCount":-5}}`, `{"candidates":[{"content":{"parts":[null]}}]}`, `[]`, `{"candidates":7}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(_ *testing.T, events string) {
		a := &assembly{}
		for line := range strings.Lines(events) {
			_, _, _ = a.Event("", []byte(line)) // a bad event is an error, which ends the stream
		}
		answer := a.answer()
		m := answer.Message()
		m.Items(Name)
	})
}

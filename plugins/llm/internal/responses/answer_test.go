package responses

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
	message := func(rest string) string { return `{"object":"response","model":"g",` + rest + `}` }
	for _, c := range []struct {
		name, body string
		want       chat.Answer
	}{
		{"cut off", message(`"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}]`), chat.Answer{Model: "g", Text: "a", FinishReason: "length"}},
		{"filtered", message(`"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]`), chat.Answer{Model: "g", FinishReason: "content_filter"}},
		{"a refusal", message(`"status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"no"}]}]`), chat.Answer{Model: "g", Text: "no", FinishReason: "refusal"}},
		{"reasoning that cannot go back", message(`"status":"completed","output":[{"type":"reasoning","id":"r","summary":[{"text":"a"},{"text":"b"}]},{"type":"function_call","call_id":"1","name":"f","arguments":""}]`), chat.Answer{Model: "g", Reasoning: "a\n\nb", ToolCalls: []chat.ToolCall{{ID: "1", Name: "f"}}, FinishReason: "tool_calls"}},
		{
			"counts", message(`"status":"completed","output":[],"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":3},"output_tokens_details":{"reasoning_tokens":2}}`),
			chat.Answer{Model: "g", FinishReason: "stop", Usage: &chat.Usage{InputTokens: 10, OutputTokens: 5, TotalTokens: 15, CachedTokens: 4, CacheWriteTokens: 3, ReasoningTokens: 2}},
		},
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

func TestStreamsOfServers(t *testing.T) {
	t.Parallel()
	const text = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n"
	const item = "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"a\"}]}}\n\n"
	const end = "data: {\"type\":\"response.completed\",\"response\":{\"object\":\"response\",\"output\":[]}}\n\n"
	for _, c := range []struct {
		name  string
		reply servertest.Reply
		said  string
		kind  tea.ErrorType // "" for an answer
	}{
		{"pieces and the item", servertest.Reply{Chunks: []string{text, item, end}}, "a", ""},
		{"no pieces", servertest.Reply{Chunks: []string{item, end}}, "a", ""},
		{"only the end", servertest.Reply{Chunks: []string{strings.Replace(end, `[]`, `[{"type":"message","content":[{"type":"output_text","text":"a"}]}]`, 1)}}, "a", ""},
		{"no end", servertest.Reply{Chunks: []string{text}}, "a", tea.ConnectionError},
		{"failed", servertest.Reply{Chunks: []string{"data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"slow\"}}}\n\n"}}, "", tea.RateLimited},
		{"an event with an error", servertest.Reply{Chunks: []string{"event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"down\"}\n\n"}}, "", tea.ConnectionError},
		{"an error as JSON", servertest.Reply{Chunks: []string{`{"error":{"message":"no","code":"invalid_api_key"}}`}}, "", tea.PermissionDenied},
		{"no object", servertest.Reply{Chunks: []string{"data: {\"type\":\"response.output_item.done\",\"item\":7}\n\n"}}, "", tea.ConnectionError},
	} {
		answer, err, said := ask(t, true, c.reply)
		switch {
		case said != c.said:
			t.Errorf("%s: said %.20q", c.name, said)
		case c.kind == "" && (err != nil || answer.Text != "a" || answer.FinishReason != "stop"):
			t.Errorf("%s: %v, %v", c.name, answer, err)
		case c.kind != "" && (err == nil || err.Type != c.kind):
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	seed, half := int64(1), 0.5
	req := &chat.Request{
		Model: "gpt-4o", Temperature: &half, TopP: &half, MaxTokens: 9, Stop: []string{"x"}, Seed: &seed, ToolChoice: "f",
		Format: &chat.Format{Schema: map[string]any{"type": "object"}}, Tools: []chat.Tool{{Name: "f", Parameters: map[string]any{}}},
		Messages: []chat.Message{{Role: "user", Content: chat.Content{{Text: "a"}, {File: "https://x/a.pdf"}}}, {Role: "assistant", ToolCalls: []chat.ToolCall{{ID: strings.Repeat("x", 99), Name: "f", Arguments: "[1]"}}}},
	}
	got, notSent := toBody(req)
	want := map[string]any{
		"model": "gpt-4o", "store": false, "temperature": half, "top_p": half, "max_output_tokens": 9,
		"text":  map[string]any{"format": map[string]any{"type": "json_schema", "name": "answer", "schema": map[string]any{"type": "object"}, "strict": false}},
		"tools": []any{map[string]any{"type": "function", "name": "f", "description": "", "parameters": map[string]any{}, "strict": false}}, "tool_choice": map[string]any{"type": "function", "name": "f"},
		"input": []any{
			map[string]any{"role": "user", "content": []any{map[string]any{"type": "input_text", "text": "a"}, map[string]any{"type": "input_file", "file_url": "https://x/a.pdf"}}},
			map[string]any{"type": "function_call", "call_id": chat.CallID(strings.Repeat("x", 99)), "name": "f", "arguments": "{}"},
		},
	}
	if diff := cmp.Diff(want, got) + cmp.Diff([]string{"stop", "seed"}, notSent); diff != "" {
		t.Error(diff)
	}
}

// No event of a hostile server ends the process, and an answer within its limit stays one.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{
		`{"object":"response","output":[{"type":"reasoning","encrypted_content":"x","summary":[{"text":"a"}]},{"type":"message","content":[{"text":"b"}]},{"type":"function_call"}]}`,
		`{"type":"response.output_text.delta","delta":"a"}` + "\n" + `{"type":"response.output_item.done","item":{"type":"message","content":[{"text":"a"}]}}`,
		`{"type":"response.output_item.done","item":null}`, `{"type":"response.completed","response":{"usage":{"input_tokens":-5}}}`, `[]`, `{"type":7}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(_ *testing.T, events string) {
		a := &assembly{said: map[int]bool{}}
		for line := range strings.Lines(events) {
			_, _, _ = a.Event("", []byte(line)) // a bad event is an error, which ends the stream
		}
		if !a.Complete() {
			return
		}
		answer := a.answer()
		m := answer.Message()
		m.Items(Name)
	})
}

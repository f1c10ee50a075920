package ollama

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
	"github.com/the-edge-agent/tea/sdk/x/httpapi/servertest"
)

func connect(t testing.TB, replies ...servertest.Reply) (*Provider, *servertest.Server) {
	t.Helper()
	server := servertest.Start(t, replies...)
	return New(&httpapi.Server{
		HTTP: servertest.HTTP(t), Base: server.URL, MaxRetries: 2, MaxAnswer: 1 << 16,
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}), server
}

func hello() *chat.Request {
	return &chat.Request{Model: "m", Messages: []chat.Message{chat.Text("user", "hi")}}
}

func say(text string) string {
	return `{"model":"m","message":{"content":"` + text + `"},"done":false}` + "\n"
}

const done = `{"model":"m","message":{"content":""},"done":true,"done_reason":"stop","prompt_eval_count":3,"eval_count":2}` + "\n"

func TestStreams(t *testing.T) {
	t.Parallel()
	usage := &chat.Usage{InputTokens: 3, OutputTokens: 2, TotalTokens: 5}
	for _, c := range []struct {
		name   string
		chunks []string
		want   chat.Answer
	}{
		{"as documented", []string{say("Hel"), say("lo"), done}, chat.Answer{Model: "m", Text: "Hello", FinishReason: "stop", Usage: usage}},
		{"CRLF, empty lines, cut anywhere", strings.SplitAfter(strings.ReplaceAll(say("h")+"\n"+done, "\n", "\r\n"), ""), chat.Answer{Model: "m", Text: "h", FinishReason: "stop", Usage: usage}},
		{"no end of line at the end", []string{say("a"), strings.TrimSpace(done)}, chat.Answer{Model: "m", Text: "a", FinishReason: "stop", Usage: usage}},
		{"no counts, no reason", []string{say("a"), `{"done":true}`}, chat.Answer{Model: "m", Text: "a", FinishReason: "unknown"}},
		{"thinking", []string{`{"message":{"thinking":"hm"}}` + "\n", say("a"), done}, chat.Answer{Model: "m", Text: "a", Reasoning: "hm", FinishReason: "stop", Usage: usage, Extra: map[string]any{"thinking": "hm"}}},
		{"a think block", []string{say("<thi"), say("nk>hm</think>"), say("a"), done}, chat.Answer{Model: "m", Text: "a", Reasoning: "hm", FinishReason: "stop", Usage: usage}},
		{"a surrogate pair over lines", []string{say(`a\ud83d`), say(`\ude00`), done}, chat.Answer{Model: "m", Text: "a😀", FinishReason: "stop", Usage: usage}},
		{"half a character", []string{say("\xe2\x98"), say("\x80"), done}, chat.Answer{Model: "m", Text: "☀", FinishReason: "stop", Usage: usage}},
		{"cut off by length", []string{say("a"), `{"done":true,"done_reason":"length"}`}, chat.Answer{Model: "m", Text: "a", FinishReason: "length"}},
		{
			"arguments as an object",
			[]string{`{"message":{"tool_calls":[{"function":{"name":"add","arguments":{"x":1}}}]}}` + "\n", done},
			chat.Answer{Model: "m", ToolCalls: []chat.ToolCall{{Name: "add", Arguments: `{"x":1}`}}, FinishReason: "tool_calls", Usage: usage},
		},
		{
			"arguments as text",
			[]string{`{"message":{"tool_calls":[{"function":{"name":"add","arguments":"{\"x\":1}"}}]}}` + "\n", done},
			chat.Answer{Model: "m", ToolCalls: []chat.ToolCall{{Name: "add", Arguments: `{"x":1}`}}, FinishReason: "tool_calls", Usage: usage},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, _ := connect(t, servertest.Reply{Chunks: c.chunks})
			var tokens strings.Builder
			got, err := p.Chat(t.Context(), hello(), func(d chat.Delta) { tokens.WriteString(d.Text) })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if tokens.String() != c.want.Text {
				t.Errorf("the tokens are %q", tokens.String())
			}
		})
	}
}

func TestStreamsThatFail(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		reply    servertest.Reply
		want     tea.ErrorType
		contains string
		requests int
	}{
		{"breaks behind tokens", servertest.Reply{Chunks: []string{say("a")}, Then: servertest.Break}, tea.ConnectionError, "broke off after 1 tokens", 1},
		{"ends without done", servertest.Reply{Chunks: []string{say("a")}}, tea.ConnectionError, "broke off after 1 tokens", 1},
		{"nothing", servertest.Reply{}, tea.ConnectionError, "closed the connection", 3},
		{"error behind tokens", servertest.Reply{Chunks: []string{say("a"), `{"error":"llama runner process has terminated"}`}}, tea.ConnectionError, "llama runner", 1},
		{"no model", servertest.Reply{Status: 404, Chunks: []string{`{"error":"model \"m\" not found, try pulling it first"}`}}, tea.NotFound, "try pulling it", 1},
		{"no JSON", servertest.Reply{Chunks: []string{"oops\n"}}, tea.ConnectionError, "did not send an answer", 3},
		{"a web page", servertest.Reply{Chunks: []string{"<html>log in</html>\n"}}, tea.ConnectionError, "a web page", 1},
		{"an endless line", servertest.Reply{Chunks: []string{strings.Repeat("a", 1<<18)}}, tea.ResourceExhausted, "max_answer_bytes", 1},
		{"an endless answer", servertest.Reply{Chunks: []string{strings.Repeat(say(strings.Repeat("a", 1000)), 70)}}, tea.ResourceExhausted, "max_answer_bytes", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, server := connect(t, c.reply)
			_, err := p.Chat(t.Context(), hello(), func(chat.Delta) {})
			e := tea.AsError(err)
			if e == nil || e.Type != c.want || !strings.Contains(e.Message, c.contains) {
				t.Errorf("got %v", err)
			}
			if n := len(server.Seen()); n != c.requests {
				t.Errorf("%d requests, want %d", n, c.requests)
			}
		})
	}
}

func TestTokenLimit(t *testing.T) {
	t.Parallel()
	p, server := connect(t, servertest.Reply{Chunks: []string{say("a")}, Then: servertest.Hang})
	p.server.TokenTimeout = 30 * time.Millisecond
	_, err := p.Chat(t.Context(), hello(), func(chat.Delta) {})
	if e := tea.AsError(err); e == nil || e.Type != tea.Timeout || e.Details["tokens"] != int64(1) {
		t.Errorf("got %v", err)
	}
	<-server.Gone
}

func TestRequest(t *testing.T) {
	t.Parallel()
	p, server := connect(t, servertest.Reply{Chunks: []string{done}})
	zero := 0.0
	_, err := p.Chat(t.Context(), &chat.Request{
		Model: "m",
		Messages: []chat.Message{
			chat.Text("developer", "be brief"),
			{Role: "user", Content: chat.Content{{Text: "what?"}, {Image: "data:image/png;base64,AAAA"}}},
			{Role: "assistant", ToolCalls: []chat.ToolCall{{ID: "c", Name: "look", Arguments: `{"x":1}`}}},
			{Role: "tool", ToolCallID: "c", Content: chat.Content{{Text: "a cat"}}},
		},
		Temperature: &zero, MaxTokens: 9, Stop: []string{"END"},
		Format: &chat.Format{Schema: map[string]any{"type": "object"}},
		Tools:  []chat.Tool{{Name: "look", Parameters: map[string]any{}}, {Name: "go", Parameters: map[string]any{}}}, ToolChoice: "look",
		Extra: map[string]any{"keep_alive": "5m", "options": map[string]any{"num_ctx": 8192}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"model": "m", "stream": false, "keep_alive": "5m", "format": map[string]any{"type": "object"},
		"options": map[string]any{"temperature": 0.0, "num_predict": 9.0, "stop": []any{"END"}, "num_ctx": 8192.0},
		"messages": []any{
			map[string]any{"role": "system", "content": "be brief"},
			map[string]any{"role": "user", "content": "what?", "images": []any{"AAAA"}},
			map[string]any{"role": "assistant", "content": "", "tool_calls": []any{map[string]any{"function": map[string]any{"name": "look", "arguments": map[string]any{"x": 1.0}}}}},
			map[string]any{"role": "tool", "content": "a cat", "tool_name": "look"},
		},
		"tools": []any{map[string]any{"type": "function", "function": map[string]any{"name": "look", "description": "", "parameters": map[string]any{}}}},
	}
	if diff := cmp.Diff(want, server.Seen()[0].Body); diff != "" {
		t.Error(diff)
	}
}

func TestImagesMustBeData(t *testing.T) {
	t.Parallel()
	p, _ := connect(t)
	_, err := p.Chat(t.Context(), &chat.Request{Messages: []chat.Message{{Role: "user", Content: chat.Content{{Image: "https://example.org/cat.png"}}}}}, nil)
	if e := tea.AsError(err); e == nil || e.Type != tea.ValidationError {
		t.Errorf("got %v", err)
	}
}

func TestEmbeddings(t *testing.T) {
	t.Parallel()
	p, server := connect(t, servertest.Reply{Chunks: []string{`{"model":"e","embeddings":[[1,2],[3,4]],"prompt_eval_count":5}`}})
	got, err := p.Embed(t.Context(), &chat.EmbedRequest{Model: "e", Input: []string{"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	want := &chat.Embeddings{Model: "e", Vectors: [][]float64{{1, 2}, {3, 4}}, Usage: &chat.Usage{InputTokens: 5, TotalTokens: 5}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if seen := server.Seen()[0]; seen.Path != "/api/embed" {
		t.Errorf("path %s", seen.Path)
	}
	if _, err := p.Embed(t.Context(), &chat.EmbedRequest{Model: "e", Input: []string{"a"}}); err == nil {
		t.Error("two vectors for one input are not an error")
	}
}

// A null, which stands for NaN, became 0.
func TestNullInAnEmbeddingIsAnError(t *testing.T) {
	t.Parallel()
	p, _ := connect(t, servertest.Reply{Chunks: []string{`{"model":"e","embeddings":[[1,null]]}`}})
	if got, err := p.Embed(t.Context(), &chat.EmbedRequest{Model: "e", Input: []string{"a"}}); err == nil {
		t.Errorf("got %v", got)
	}
}

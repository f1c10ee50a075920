package anthropic

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
	p := New(&httpapi.Server{HTTP: servertest.HTTP(t), Base: server.URL, MaxAnswer: 1 << 16}, Options{})
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
	const usage = `"usage":{"input_tokens":1,"output_tokens":2}`
	counts := &chat.Usage{InputTokens: 1, OutputTokens: 2, TotalTokens: 3}
	for _, c := range []struct {
		name, body string
		want       chat.Answer
	}{
		{"cut off", `{"type":"message","model":"c","content":[{"type":"text","text":"a"}],"stop_reason":"max_tokens",` + usage + `}`, chat.Answer{Model: "c", Text: "a", FinishReason: "length", Usage: counts}},
		{"context full", `{"type":"message","content":[],"stop_reason":"model_context_window_exceeded",` + usage + `}`, chat.Answer{FinishReason: "length", Usage: counts}},
		{"a refusal", `{"type":"message","content":[],"stop_reason":"refusal","usage":null}`, chat.Answer{FinishReason: "refusal"}},
		{"a pause", `{"type":"message","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{"q":"x"}}],"stop_reason":"pause_turn"}`, chat.Answer{FinishReason: "pause_turn", Extra: map[string]any{"turn": map[string]any{
			"provider": "anthropic", "items": []any{map[string]any{"own": map[string]any{"type": "server_tool_use", "id": "s", "name": "web_search", "input": map[string]any{"q": "x"}}}},
		}}}},
		{"arguments that are not an object", `{"type":"message","content":[{"type":"tool_use","id":"1","name":"f","input":null}],"stop_reason":"tool_use"}`, chat.Answer{ToolCalls: []chat.ToolCall{{ID: "1", Name: "f", Arguments: "null"}}, FinishReason: "tool_calls"}},
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
	const start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"c\"}}\n\n"
	const text = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"a\"}}\n\n"
	const end = "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n"
	for _, c := range []struct {
		name  string
		reply servertest.Reply
		said  string
		kind  tea.ErrorType // "" for an answer
	}{
		{"keep-alives and later events", servertest.Reply{Chunks: []string{start, ": ok\n\n", "event: ping\ndata: {\"type\":\"ping\"}\n\n", "data: {\"type\":\"later\"}\n\n", text, "data: {\"type\":\"content_block_delta\",\"index\":9,\"delta\":{\"text\":\"x\"}}\n\n", end}}, "a", ""},
		{"the connection breaks after the end", servertest.Reply{Chunks: []string{start, text, end}, Then: servertest.Break}, "a", ""},
		{"no end", servertest.Reply{Chunks: []string{start, text}}, "a", tea.ConnectionError},
		{"nothing", servertest.Reply{}, "", tea.ConnectionError},
		{"a page", servertest.Reply{Header: map[string]string{"Content-Type": "text/html"}}, "", tea.ConnectionError},
		{"an error as JSON", servertest.Reply{Chunks: []string{`{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`}}, "", tea.RateLimited},
		{"an error without a type", servertest.Reply{Chunks: []string{`{"error":{"message":"no","code":401}}`}}, "", tea.PermissionDenied},
		{"no JSON", servertest.Reply{Chunks: []string{"data: hello\n\n"}}, "", tea.ConnectionError},
		{"too much", servertest.Reply{Chunks: []string{start, strings.Replace(text, `"a"`, `"`+strings.Repeat("a", 1<<16)+`"`, 1), end}}, strings.Repeat("a", 1<<16), tea.ResourceExhausted},
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

// No event of a hostile server ends the process, and an answer within its limit stays one.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{
		`{"type":"message","content":[{"type":"thinking","thinking":"a","signature":"s"},{"type":"text","text":"b"},{"type":"tool_use","input":{}}]}`,
		`{"type":"content_block_start","content_block":{"type":"tool_use","id":1}}` + "\n" + `{"type":"content_block_delta","index":0,"delta":{"partial_json":"{"}}`,
		`{"type":"content_block_delta","index":-1}`, `{"type":"message_start","message":{"usage":{"input_tokens":-5}}}`, `[]`, `{"type":7}`,
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

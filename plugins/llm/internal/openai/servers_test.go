package openai

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi/servertest"
)

// part is a chunk with a piece of a tool call.
func part(piece string) string { return sse(`{"choices":[{"delta":{"tool_calls":[` + piece + `]}}]}`) }

// What servers, and proxies in front of them, make of the protocol.
func TestDialectsOfServers(t *testing.T) {
	t.Parallel()
	add := chat.Answer{ToolCalls: []chat.ToolCall{{ID: "c1", Name: "add", Arguments: `{"x":1}`}}, FinishReason: "tool_calls"}
	said := chat.Answer{Text: "a", FinishReason: "stop"}
	for _, c := range []struct {
		name   string
		chunks []string
		want   chat.Answer
	}{
		{"spaces around DONE", []string{say("a"), stop, "data:  [DONE] \r\n\r\n"}, said},
		{"rubbish behind DONE", []string{say("a"), stop, done, "data: oops\n\n"}, said},
		{"empty events as keep-alive", []string{"data:\n\n", say("a"), "data: \n\n", stop, done}, said},
		{"an event of another kind", []string{"event: ping\ndata: {\"type\":\"ping\"}\n\n", "event: ping\ndata: alive\n\n", say("a"), stop, done}, said},
		{"a number as id", []string{part(`{"index":0,"id":7,"function":{"name":"add","arguments":"{\"x\":1}"}}`), done}, chat.Answer{
			ToolCalls: []chat.ToolCall{{ID: "7", Name: "add", Arguments: `{"x":1}`}}, FinishReason: "tool_calls",
		}},
		{"the name once more behind the arguments", []string{
			part(`{"index":0,"id":"c1","function":{"name":"add","arguments":"{\"x\":1}"}}`), part(`{"index":0,"function":{"name":"add","arguments":""}}`), done,
		}, add},
		{"empty id and name in later pieces", []string{
			part(`{"index":0,"id":"c1","function":{"name":"add","arguments":null}}`), part(`{"index":0,"id":"","function":{"name":"","arguments":"{\"x\":1}"}}`), done,
		}, add},
		{"indexes as text", []string{
			sse(`{"choices":[{"index":"0","delta":{"tool_calls":[{"index":"0","id":"c1","function":{"name":"add","arguments":"{\"x\":"}}]}}]}`), part(`{"index":"0","function":{"arguments":"1}"}}`), done,
		}, add},
		{"one id for all calls", []string{
			part(`{"id":"c1","function":{"name":"add","arguments":"{\"x\":1}"}}`), part(`{"id":"c1","function":{"name":"add","arguments":"{\"x\":2}"}}`), done,
		}, chat.Answer{ToolCalls: []chat.ToolCall{add.ToolCalls[0], {ID: "c1", Name: "add", Arguments: `{"x":2}`}}, FinishReason: "tool_calls"}},
		{"id behind the name", []string{part(`{"index":0,"function":{"name":"add"}}`), part(`{"index":0,"id":"c1","function":{"arguments":"{\"x\":1}"}}`), done}, add},
		{"a whole message at the end again", []string{
			say("a"), sse(`{"choices":[{"delta":{},"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}`), done,
		}, said},
		{"thinking in the parts of the content", []string{
			sse(`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}}]}`), say("a"), stop, done,
		}, chat.Answer{Text: "a", Reasoning: "hm", FinishReason: "stop"}},
		{"finish_reason null behind the end", []string{
			say("a"), stop, sse(`{"choices":[{"delta":{"content":""},"finish_reason":null}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`), done,
		}, chat.Answer{Text: "a", FinishReason: "stop", Usage: &chat.Usage{InputTokens: 1, OutputTokens: 1, TotalTokens: 2}}},
		{"usage in an event without choices", []string{say("a"), stop, sse(`{"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`), done}, chat.Answer{
			Text: "a", FinishReason: "stop", Usage: &chat.Usage{InputTokens: 1, OutputTokens: 1, TotalTokens: 2},
		}},
		{"an empty error in every chunk", []string{sse(`{"error":{},"choices":[{"delta":{"content":"a"}}]}`), sse(`{"error":"","choices":[{"delta":{},"finish_reason":"stop"}]}`), done}, said},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, server := connect(t, servertest.Reply{Header: map[string]string{"Content-Type": "text/event-stream"}, Chunks: c.chunks})
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
			if n := len(server.Seen()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

func TestStreamUnderTheWrongName(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"application/json", "text/plain", "application/octet-stream"} {
		for _, body := range []string{
			say("a") + stop + done,
			"\n\n" + `{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`,
			"{\n \"choices\": [\n  {\"message\": {\"content\": \"a\"}, \"finish_reason\": \"stop\"}\n ]\n}\n",
		} {
			p, _ := connect(t, servertest.Reply{Header: map[string]string{"Content-Type": kind}, Chunks: []string{body}})
			got, err := p.Chat(t.Context(), hello(), func(chat.Delta) {})
			if err != nil || got.Text != "a" || got.FinishReason != "stop" {
				t.Errorf("%s %q: got %v, %v", kind, body, got, err)
			}
		}
	}
}

// Failures behind a status of 200, wherever a server puts them.
func TestErrorsInsideOfAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body string
		want       tea.ErrorType
	}{
		{"a choice that failed", sse(`{"choices":[{"delta":{"content":""},"finish_reason":"error","error":{"code":429,"message":"no room"}}]}`) + done, tea.RateLimited},
		{"an object called error", sse(`{"object":"error","message":"no room","type":"BadRequestError","param":null,"code":400}`) + done, tea.ValidationError},
		{"a field called error", `error: {"code":400,"message":"no room","type":"invalid_request_error"}` + "\n\n", tea.ValidationError},
		{"a list of one error", "[{\n  \"error\": {\n    \"code\": 400,\n    \"message\": \"no room\",\n    \"status\": \"INVALID_ARGUMENT\"\n  }\n}\n]\n", tea.ValidationError},
		{"an error over several lines", "{\n  \"error\": {\n    \"code\": 400,\n    \"message\": \"no room\"\n  }\n}\n", tea.ValidationError},
	} {
		for _, kind := range []string{"text/event-stream", "application/json"} {
			if kind == "application/json" && strings.Contains(c.body, ": {\"") && !strings.HasPrefix(c.body, "{") {
				continue // an event is not a JSON document
			}
			t.Run(c.name+" as "+kind, func(t *testing.T) {
				t.Parallel()
				p, _ := connect(t, servertest.Reply{Header: map[string]string{"Content-Type": kind}, Chunks: []string{c.body}})
				_, err := p.Chat(t.Context(), hello(), func(chat.Delta) {})
				if e := tea.AsError(err); e == nil || e.Type != c.want || !strings.Contains(e.Message, "no room") {
					t.Errorf("got %v, want a %s", err, c.want)
				}
			})
		}
	}
}

// An address with the wrong path is the mistake that everybody makes once.
func TestAddressThatLacksItsPath(t *testing.T) {
	t.Parallel()
	p, _ := connect(t, servertest.Reply{Status: 404, Chunks: []string{`{"detail":"Not Found"}`}})
	bare := *p.server
	bare.Base = strings.TrimSuffix(bare.Base, "/v1")
	for _, c := range []struct {
		name     string
		provider *Provider
		want     string
	}{
		{"no path", New(&bare), "ends in /v1"},
		{"the right path", p, ""},
		{"Azure with a path", NewAzure(p.server, "d", "1"), "without a path"},
		{"Azure", NewAzure(&bare, "d", "1"), ""},
	} {
		_, err := c.provider.Chat(t.Context(), hello(), nil)
		_, embedErr := c.provider.Embed(t.Context(), &chat.EmbedRequest{Model: "m", Input: []string{"a"}})
		for _, err := range []error{err, embedErr} {
			e := tea.AsError(err)
			if e == nil || e.Type != tea.NotFound || !strings.Contains(e.Message, c.want) || strings.Contains(e.Message, "api_base") != (c.want != "") {
				t.Errorf("%s: got %v, want the hint %q", c.name, err, c.want)
			}
		}
	}
}

package openai

import (
	"bytes"
	"compress/gzip"
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

// connect makes a provider for a server of these replies that waits for
// nothing.
func connect(t testing.TB, replies ...servertest.Reply) (*Provider, *servertest.Server) {
	t.Helper()
	server := servertest.Start(t, replies...)
	return New(&httpapi.Server{
		HTTP: servertest.HTTP(t), Base: server.URL + "/v1", MaxRetries: 2, MaxAnswer: 1 << 16,
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}), server
}

func hello() *chat.Request {
	return &chat.Request{Model: "m", Messages: []chat.Message{chat.Text("user", "hi")}}
}

// sse makes an event of a chunk.
func sse(chunk string) string { return "data: " + chunk + "\n\n" }

// say is a chunk with text.
func say(text string) string { return sse(`{"choices":[{"delta":{"content":"` + text + `"}}]}`) }

const (
	done = "data: [DONE]\n\n"
	stop = `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n"
)

// Peculiarities of real servers, as they send them.
func TestStreams(t *testing.T) {
	t.Parallel()
	call := func(id, name, arguments string) chat.ToolCall {
		return chat.ToolCall{ID: id, Name: name, Arguments: arguments}
	}
	for _, c := range []struct {
		name   string
		chunks []string
		header map[string]string
		want   chat.Answer
		tokens []string // nil: not looked at
	}{
		{
			name: "as the standard says",
			chunks: []string{
				sse(`{"id":"1","model":"m-2","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}`),
				say("Hel"), say("lo"), stop,
				sse(`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`), done,
			},
			want:   chat.Answer{Model: "m-2", Text: "Hello", FinishReason: "stop", Usage: &chat.Usage{InputTokens: 3, OutputTokens: 2, TotalTokens: 5}},
			tokens: []string{"Hel", "lo"},
		},
		{
			name: "CRLF and comments", chunks: []string{": keep-alive\r\n\r\n", strings.ReplaceAll(say("a"), "\n", "\r\n"), ": OPENROUTER PROCESSING\r\n\r\n", stop, done},
			want: chat.Answer{Text: "a", FinishReason: "stop"},
		},
		{name: "no DONE", chunks: []string{say("a"), stop}, want: chat.Answer{Text: "a", FinishReason: "stop"}},
		{name: "no finish_reason", chunks: []string{say("a"), done}, want: chat.Answer{Text: "a", FinishReason: "unknown"}},
		{name: "neither", chunks: []string{say("a")}, want: chat.Answer{Text: "a", FinishReason: "unknown"}},
		{name: "no empty line at the end", chunks: []string{say("a"), strings.TrimSpace(stop)}, want: chat.Answer{Text: "a", FinishReason: "stop"}},
		{name: "empty choices first", chunks: []string{sse(`{"choices":[],"prompt_filter_results":[{}]}`), say("a"), stop, done}, want: chat.Answer{Text: "a", FinishReason: "stop"}},
		{
			name: "null everywhere", chunks: []string{sse(`{"choices":[{"delta":{"content":null,"tool_calls":null,"function_call":null},"logprobs":null}],"error":null}`), say("a"), stop, done},
			want: chat.Answer{Text: "a", FinishReason: "stop"},
		},
		{
			name: "usage of nulls", chunks: []string{say("a"), sse(`{"choices":[{"delta":{},"finish_reason":"length"}],"usage":{"prompt_tokens":null}}`), done},
			want: chat.Answer{Text: "a", FinishReason: "length"},
		},
		{
			name: "usage in every chunk", chunks: []string{
				sse(`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`),
				sse(`{"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`), done,
			},
			want: chat.Answer{Text: "ab", FinishReason: "stop", Usage: &chat.Usage{InputTokens: 3, OutputTokens: 2, TotalTokens: 5}},
		},
		{name: "chunks cut anywhere", chunks: strings.SplitAfter(say("héllo")+stop+done, ""), want: chat.Answer{Text: "héllo", FinishReason: "stop"}},
		{
			name: "half a character at a chunk's end", chunks: []string{say("a\xf0\x9f"), say("\x98\x80b"), stop, done},
			want: chat.Answer{Text: "a😀b", FinishReason: "stop"}, tokens: []string{"a", "😀b"},
		},
		{name: "half a character at the end", chunks: []string{say("a\xe2"), stop, done}, want: chat.Answer{Text: "a\ufffd", FinishReason: "stop"}},
		{
			name: "reasoning_content", chunks: []string{sse(`{"choices":[{"delta":{"reasoning_content":"hm"}}]}`), say("a"), stop, done},
			want: chat.Answer{Text: "a", Reasoning: "hm", FinishReason: "stop", Extra: map[string]any{"reasoning_content": "hm"}},
		},
		{
			name: "reasoning", chunks: []string{sse(`{"choices":[{"delta":{"content":"","reasoning":"hm"}}]}`), say("a"), stop, done},
			want: chat.Answer{Text: "a", Reasoning: "hm", FinishReason: "stop", Extra: map[string]any{"reasoning": "hm"}},
		},
		{
			name: "a think block over chunks", chunks: []string{say("<th"), say("ink>h"), say("m</thi"), say(`nk>\n\n`), say("a"), stop, done},
			want: chat.Answer{Text: "a", Reasoning: "hm", FinishReason: "stop"}, tokens: []string{"a"},
		},
		{
			name: "a think block without an end", chunks: []string{say("<think>hm"), sse(`{"choices":[{"delta":{},"finish_reason":"length"}]}`), done},
			want: chat.Answer{Reasoning: "hm", FinishReason: "length"},
		},
		{
			name: "a surrogate pair over chunks", chunks: []string{say(`a\ud83d`), say(`\ude00b`), stop, done},
			want: chat.Answer{Text: "a😀b", FinishReason: "stop"}, tokens: []string{"a", "😀b"},
		},
		{
			name: "a surrogate pair over chunks of arguments", chunks: []string{
				sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"add","arguments":"{\"x\":\"\ud83d"}}]}}]}`),
				sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\ude00\"}"}}]}}]}`), stop, done,
			},
			want: chat.Answer{ToolCalls: []chat.ToolCall{call("c1", "add", `{"x":"😀"}`)}, FinishReason: "tool_calls"},
		},
		{
			name: "reasoning with signatures", chunks: []string{
				sse(`{"choices":[{"delta":{"role":"assistant","content":null,"reasoning_details":[{"type":"reasoning.text","text":"h","format":"f","index":0}]}}]}`),
				sse(`{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","text":"m","format":"f","index":0,"signature":"sig"}]}}]}`),
				sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","extra_content":{"google":{"thought_signature":"s/1"}},"function":{"name":"add","arguments":"{}"}}]}}]}`),
				stop, done,
			},
			want: chat.Answer{
				ToolCalls:    []chat.ToolCall{{ID: "c1", Name: "add", Arguments: "{}", Extra: map[string]any{"extra_content": map[string]any{"google": map[string]any{"thought_signature": "s/1"}}}}},
				FinishReason: "tool_calls",
				Extra:        map[string]any{"reasoning_details": []any{map[string]any{"type": "reasoning.text", "text": "hm", "format": "f", "index": int64(0), "signature": "sig"}}},
			},
		},
		{
			name: "refusal in deltas", chunks: []string{sse(`{"choices":[{"delta":{"refusal":"I "}}]}`), sse(`{"choices":[{"delta":{"refusal":"cannot"}}]}`), stop, done},
			want: chat.Answer{Text: "I cannot", FinishReason: "refusal"},
		},
		{
			name: "usage with details", chunks: []string{
				say("a"), stop,
				sse(`{"choices":[],"usage":{"prompt_tokens":30,"completion_tokens":20,"total_tokens":50,"prompt_tokens_details":{"cached_tokens":10},"completion_tokens_details":{"reasoning_tokens":15}}}`), done,
			},
			want: chat.Answer{Text: "a", FinishReason: "stop", Usage: &chat.Usage{InputTokens: 30, OutputTokens: 20, TotalTokens: 50, CachedTokens: 10, ReasoningTokens: 15}},
		},
		{
			name: "usage that is nonsense", chunks: []string{
				say("a"), stop, sse(`{"choices":[],"usage":{"prompt_tokens":"3","completion_tokens":1e300,"total_tokens":-7,"prompt_tokens_details":null}}`), done,
			},
			want: chat.Answer{Text: "a", FinishReason: "stop", Usage: &chat.Usage{InputTokens: 3, OutputTokens: 1 << 29, TotalTokens: 1<<29 + 3}},
		},
		{
			name: "content as parts", chunks: []string{sse(`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"a"},"b"]}}]}`), stop, done},
			want: chat.Answer{Text: "ab", FinishReason: "stop"},
		},
		{
			name: "message instead of delta", chunks: []string{sse(`{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`), done},
			want: chat.Answer{Text: "a", FinishReason: "stop"},
		},
		{name: "a second choice", chunks: []string{say("a"), sse(`{"choices":[{"index":1,"delta":{"content":"other"}}]}`), stop, done}, want: chat.Answer{Text: "a", FinishReason: "stop"}},
		{
			name: "not streamed at all", header: map[string]string{"Content-Type": "application/json; charset=utf-8"},
			chunks: []string{`{"choices":[{"message":{"content":"whole"},"finish_reason":"stop"}]}`},
			want:   chat.Answer{Text: "whole", FinishReason: "stop"}, tokens: []string{"whole"},
		},
		{name: "connection breaks behind the end", chunks: []string{say("a"), stop, "data: {"}, want: chat.Answer{Text: "a", FinishReason: "stop"}},

		{
			name: "tool call in deltas", chunks: []string{
				sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"add","arguments":""}}]}}]}`),
				sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\""}}]}}]}`),
				sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}`),
				sse(`{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`), done,
			},
			want: chat.Answer{ToolCalls: []chat.ToolCall{call("c1", "add", `{"x":1}`)}, FinishReason: "tool_calls"},
		},
		{
			name: "two tool calls, interleaved", chunks: []string{
				sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"a","arguments":""}},{"index":1,"id":"c2","function":{"name":"b","arguments":""}}]}}]}`),
				sse(`{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{}"}},{"index":0,"function":{"arguments":"{\"q\":1}"}}]}}]}`), stop, done,
			},
			want: chat.Answer{ToolCalls: []chat.ToolCall{call("c1", "a", `{"q":1}`), call("c2", "b", `{}`)}, FinishReason: "tool_calls"},
		},
		{
			name: "no index, no id", chunks: []string{
				sse(`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"add","arguments":"{\"x\""}}]}}]}`),
				sse(`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":":1}"}}]}}]}`),
				sse(`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"add","arguments":"{\"x\":2}"}}]}}]}`), stop, done,
			},
			want: chat.Answer{ToolCalls: []chat.ToolCall{call("", "add", `{"x":1}`), call("", "add", `{"x":2}`)}, FinishReason: "tool_calls"},
		},
		{
			name: "an index for each piece", chunks: []string{
				sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"add","arguments":""}}]}}]}`),
				sse(`{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{\"x\""}}]}}]}`),
				sse(`{"choices":[{"delta":{"tool_calls":[{"index":2,"id":"","function":{"name":"","arguments":":1}"}}]}}]}`),
				sse(`{"choices":[{"delta":{"tool_calls":[{"index":3,"id":"c2","function":{"name":"sub","arguments":"{"}}]}}]}`),
				sse(`{"choices":[{"delta":{"tool_calls":[{"index":4,"function":{"arguments":"}"}}]}}]}`),
				sse(`{"choices":[{"delta":{"tool_calls":[{"index":5,"function":{"arguments":""}}]}}]}`), stop, done,
			},
			want: chat.Answer{ToolCalls: []chat.ToolCall{call("c1", "add", `{"x":1}`), call("c2", "sub", `{}`)}, FinishReason: "tool_calls"},
		},
		{
			name: "an index for each piece, without any id", chunks: []string{
				sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"add","arguments":"{\"x\""}}]}}]}`),
				sse(`{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":":1}"}}]}}]}`), stop, done,
			},
			want: chat.Answer{ToolCalls: []chat.ToolCall{call("", "add", `{"x":1}`)}, FinishReason: "tool_calls"},
		},
		{name: "null as the reason, and the end", chunks: []string{sse(`{"choices":[{"delta":{"content":"a"},"finish_reason":null}]}`), done}, want: chat.Answer{Text: "a", FinishReason: "unknown"}},
		{
			name: "a call without a reason", chunks: []string{sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"add","arguments":"{}"}}]}}]}`), done},
			want: chat.Answer{ToolCalls: []chat.ToolCall{call("c1", "add", `{}`)}, FinishReason: "tool_calls"},
		},
		{
			name: "ids without index", chunks: []string{
				sse(`{"choices":[{"delta":{"tool_calls":[{"id":"c1","function":{"name":"a","arguments":"{"}}]}}]}`),
				sse(`{"choices":[{"delta":{"tool_calls":[{"id":"c1","function":{"arguments":"}"}}]}}]}`),
				sse(`{"choices":[{"delta":{"tool_calls":[{"id":"c2","function":{"name":"b"}}]}}]}`), stop, done,
			},
			want: chat.Answer{ToolCalls: []chat.ToolCall{call("c1", "a", `{}`), call("c2", "b", ``)}, FinishReason: "tool_calls"},
		},
		{
			name: "every call is number 0", chunks: []string{
				sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"a","arguments":"{}"}},{"index":0,"id":"c2","function":{"name":"b","arguments":"{}"}}]}}]}`), stop, done,
			},
			want: chat.Answer{ToolCalls: []chat.ToolCall{call("c1", "a", `{}`), call("c2", "b", `{}`)}, FinishReason: "tool_calls"},
		},
		{
			name: "every call is number 0 and has no id", chunks: []string{
				sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"a","arguments":"{}"}}]}}]}`),
				sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"b","arguments":"{}"}}]}}]}`), stop, done,
			},
			want: chat.Answer{ToolCalls: []chat.ToolCall{call("", "a", `{}`), call("", "b", `{}`)}, FinishReason: "tool_calls"},
		},
		{
			name: "name and id repeated in every delta", chunks: []string{
				sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"add","arguments":"{\"x\""}}]}}]}`),
				sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"add","arguments":":1}"}}]}}]}`), stop, done,
			},
			want: chat.Answer{ToolCalls: []chat.ToolCall{call("c1", "add", `{"x":1}`)}, FinishReason: "tool_calls"},
		},
		{
			name: "arguments as an object", chunks: []string{
				sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"add","arguments":{"x":1}}}]}}]}`), stop, done,
			},
			want: chat.Answer{ToolCalls: []chat.ToolCall{call("c1", "add", `{"x":1}`)}, FinishReason: "tool_calls"},
		},
		{
			name: "call and finish in one chunk", chunks: []string{
				sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"add","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`), done,
			},
			want: chat.Answer{ToolCalls: []chat.ToolCall{call("c1", "add", `{}`)}, FinishReason: "tool_calls"},
		},
		{
			name: "the old function_call", chunks: []string{
				sse(`{"choices":[{"delta":{"function_call":{"name":"add","arguments":"{\"x\""}}}]}`),
				sse(`{"choices":[{"delta":{"function_call":{"arguments":":1}"}},"finish_reason":"function_call"}]}`), done,
			},
			want: chat.Answer{ToolCalls: []chat.ToolCall{call("", "add", `{"x":1}`)}, FinishReason: "tool_calls"},
		},
		{
			name: "half a character in arguments", chunks: []string{
				sse("{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"add\",\"arguments\":\"{\\\"x\\\":\\\"\xc3\"}}]}}]}"),
				sse("{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\xa9\\\"}\"}}]}}]}"), stop, done,
			},
			want: chat.Answer{ToolCalls: []chat.ToolCall{call("c1", "add", `{"x":"é"}`)}, FinishReason: "tool_calls"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.header == nil {
				c.header = map[string]string{"Content-Type": "text/event-stream"}
			}
			p, _ := connect(t, servertest.Reply{Header: c.header, Chunks: c.chunks})
			var tokens []string
			got, err := p.Chat(t.Context(), hello(), func(d chat.Delta) {
				if d.Text != "" {
					tokens = append(tokens, d.Text)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if joined := strings.Join(tokens, ""); joined != c.want.Text {
				t.Errorf("the tokens are %q", joined)
			}
			if c.tokens != nil {
				if diff := cmp.Diff(c.tokens, tokens); diff != "" {
					t.Error(diff)
				}
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
		{"breaks behind tokens", servertest.Reply{Chunks: []string{say("a"), say("b")}, Then: servertest.Break}, tea.ConnectionError, "broke off after 2 tokens", 1},
		{"breaks before tokens", servertest.Reply{Chunks: []string{": hello\n\n"}, Then: servertest.Break}, tea.ConnectionError, "closed the connection", 3},
		{"breaks in a tool call", servertest.Reply{Chunks: []string{sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"a"}}]}}]}`)}, Then: servertest.Break}, tea.ConnectionError, "closed the connection", 3},
		{"error behind tokens", servertest.Reply{Chunks: []string{say("a"), sse(`{"error":{"message":"out of memory","code":500}}`)}}, tea.ConnectionError, "out of memory", 1},
		{"error before tokens", servertest.Reply{Chunks: []string{sse(`{"error":{"message":"overloaded","type":"server_error"}}`)}}, tea.ConnectionError, "overloaded", 3},
		{"error that stays", servertest.Reply{Chunks: []string{sse(`{"error":{"message":"too long","code":"context_length_exceeded"}}`)}}, tea.ValidationError, "too long", 1},
		{"error as text", servertest.Reply{Chunks: []string{say("a"), sse(`{"error":"boom"}`)}}, tea.ConnectionError, "boom", 1},
		{"error event", servertest.Reply{Chunks: []string{say("a"), "event: error\ndata: {\"message\":\"boom\"}\n\n"}}, tea.ConnectionError, "boom", 1},
		{"error as bare JSON", servertest.Reply{Chunks: []string{say("a"), `{"error":{"message":"boom","type":"rate_limit_error"}}`}}, tea.RateLimited, "boom", 1},
		{"nothing", servertest.Reply{}, tea.ConnectionError, "without an answer", 3},
		{"only DONE", servertest.Reply{Chunks: []string{done}}, tea.ConnectionError, "without an answer", 3},
		{"a web page", servertest.Reply{Header: map[string]string{"Content-Type": "text/html"}, Chunks: []string{"<html>log in</html>"}}, tea.ConnectionError, "a web page instead of an answer", 1},
		{"no JSON", servertest.Reply{Chunks: []string{sse("oops")}}, tea.ConnectionError, "did not send an answer", 3},
		{"an endless stream of empty chunks", servertest.Reply{Chunks: []string{strings.Repeat(sse(`{"choices":[]}`), 1<<18)}}, tea.ResourceExhausted, "too long", 1},
		{"an endless answer", servertest.Reply{Chunks: []string{strings.Repeat(say(strings.Repeat("a", 1000)), 70)}}, tea.ResourceExhausted, "max_answer_bytes", 1},
		{"an endless line", servertest.Reply{Chunks: []string{"data: " + strings.Repeat("a", 1<<18)}}, tea.ResourceExhausted, "max_answer_bytes", 1},
		{"endless arguments", servertest.Reply{Chunks: []string{strings.Repeat(sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"`+strings.Repeat("a", 1000)+`"}}]}}]}`), 70)}}, tea.ResourceExhausted, "max_answer_bytes", 1},
		{"endless members", servertest.Reply{Chunks: []string{strings.Repeat(sse(`{"choices":[{"delta":{"other":"`+strings.Repeat("a", 1000)+`"}}]}`), 70)}}, tea.ResourceExhausted, "max_answer_bytes", 1},
		{"cut off without a length", servertest.Reply{Header: map[string]string{"Transfer-Encoding": "identity"}, Chunks: []string{say("a")}}, tea.ConnectionError, "broke off after 1 tokens", 1},
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

func TestCompressedStream(t *testing.T) {
	t.Parallel()
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	w.Write([]byte(say("a") + stop + done))
	w.Close()
	p, _ := connect(t, servertest.Reply{Header: map[string]string{"Content-Encoding": "gzip", "Content-Type": "text/event-stream"}, Chunks: []string{zipped.String()}})
	got, err := p.Chat(t.Context(), hello(), func(chat.Delta) {})
	if err != nil || got.Text != "a" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestTokenLimit(t *testing.T) {
	t.Parallel()
	p, server := connect(t, servertest.Reply{Chunks: []string{say("a"), ": keep-alive\n\n"}, Then: servertest.Hang})
	p.server.TokenTimeout = 30 * time.Millisecond
	_, err := p.Chat(t.Context(), hello(), func(chat.Delta) {})
	e := tea.AsError(err)
	if e == nil || e.Type != tea.Timeout || !strings.Contains(e.Message, "token_timeout_seconds") || e.Details["tokens"] != int64(1) {
		t.Errorf("got %v", err)
	}
	<-server.Gone
}

// A server that keeps the connection open behind its last chunk does not turn
// a whole answer into a failure.
func TestTokenLimitBehindTheEnd(t *testing.T) {
	t.Parallel()
	p, _ := connect(t, servertest.Reply{Chunks: []string{say("a") + stop}, Then: servertest.Hang})
	p.server.TokenTimeout = 30 * time.Millisecond
	got, err := p.Chat(t.Context(), hello(), func(chat.Delta) {})
	if err != nil || got.Text != "a" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestTokensComeOneByOne(t *testing.T) {
	t.Parallel()
	p, _ := connect(t, servertest.Reply{Chunks: []string{say("a")}, Then: servertest.Hang})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := p.Chat(ctx, hello(), func(chat.Delta) { cancel() }) // ends only if the token is there before the stream is over
	if e := tea.AsError(err); e == nil || e.Type != tea.Canceled {
		t.Errorf("got %v", err)
	}
}

func FuzzStream(f *testing.F) {
	f.Add(say("a") + stop + done)
	f.Add(sse(`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"a","arguments":{}}}]}}]}`))
	f.Add(sse(`{"error":"x"}`))
	f.Fuzz(func(t *testing.T, body string) {
		a := newAssembly(0, func(chat.Delta) {})
		for event := range strings.SplitSeq(body, "\n\n") {
			chunk, err := decode([]byte(strings.TrimPrefix(event, "data: ")))
			if err != nil {
				return
			}
			a.add(chunk)
		}
		a.answer()
	})
}

package memory_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"

	"github.com/the-edge-agent/tea/plugins/memory/internal/tokens"
)

// summarizer is a host whose model answers with what answer makes of a prompt.
func summarizer(answer func(prompt string) string) *teatest.Host {
	return &teatest.Host{Actions: map[string]func(context.Context, any) (any, error){
		"llm.call": func(_ context.Context, params any) (any, error) {
			return map[string]any{"success": true, "content": answer(params.(map[string]any)["prompt"].(string))}, nil
		},
	}}
}

func linkedAgent(t *testing.T, host *teatest.Host) *agent {
	t.Helper()
	a := openAgent(t, teatest.Linked(memory.Bundle()), host, map[string]any{"path": t.TempDir(), "engine": "sqlite"})
	t.Cleanup(func() { a.close(t) })
	return a
}

func TestSummarize(t *testing.T) {
	t.Parallel()
	messages := []any{
		map[string]any{"role": "user", "content": "The pump is loud."},
		map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "text", "text": "Since when?"}}, "name": "x"},
		"Since Monday.",
	}
	host := summarizer(func(prompt string) string { return "[" + prompt[strings.Index(prompt, "\n\n")+2:] + "]" })
	a := linkedAgent(t, host)
	a.do(t, "memory.store", map[string]any{"key": "chat", "value": messages})
	a.do(t, "ltm.store", map[string]any{"key": "chat", "value": []any{"another one"}})
	a.do(t, "ltm.store", map[string]any{"key": "old chat", "value": []any{"from long ago"}})
	want := "[user: The pump is loud.\n\nassistant: Since when?\n\nSince Monday.]"
	for _, params := range []map[string]any{{"messages_key": "chat", "model": "m"}, {"messages": messages, "model": "m"}} {
		same(t, "summary", a.do(t, "memory.summarize", params),
			map[string]any{"summary": want, "original_count": int64(3), "token_estimate": int64(tokens.Count(want))})
	}
	same(t, "of the long-term memory", a.do(t, "memory.summarize", map[string]any{"messages_key": "old chat"})["summary"], "[from long ago]")
	asked := host.Recorded().Invoked[0].Params.(map[string]any)
	same(t, "model", asked["model"], "m")
	same(t, "max_tokens", asked["max_tokens"], int64(500))
}

func TestSummarizeNothing(t *testing.T) {
	t.Parallel()
	host := &teatest.Host{}
	a := linkedAgent(t, host)
	for count, messages := range [][]any{{}, {""}, {map[string]any{"role": "user", "content": nil}, " "}} {
		same(t, "summary", a.do(t, "memory.summarize", map[string]any{"messages": messages}),
			map[string]any{"summary": "", "original_count": int64(count), "token_estimate": int64(0)})
	}
	same(t, "calls", len(host.Recorded().Invoked), 0)
}

func TestSummarizeLongConversations(t *testing.T) {
	t.Parallel()
	const chunk, limit = 300, 60
	host := summarizer(func(prompt string) string {
		text := prompt[strings.Index(prompt, "\n\n")+2:]
		if n := tokens.Count(text); n > chunk {
			t.Errorf("a part has %d tokens, more than %d", n, chunk)
		}
		return strings.Repeat("A model that cannot be brief goes on and on. ", 100)
	})
	a := linkedAgent(t, host)
	var messages []any
	for i := range 60 {
		messages = append(messages, fmt.Sprintf("Message %d. It says something about the plant, 漢字 included.", i))
	}
	messages = append(messages, strings.Repeat("One very long message without end. ", 300), strings.Repeat("x", 5000))
	got := a.do(t, "memory.summarize", map[string]any{"messages": messages, "chunk_tokens": chunk, "max_tokens": limit})
	if n := tokens.Count(got["summary"].(string)); n > limit || n < limit/2 || got["token_estimate"] != int64(n) {
		t.Errorf("the summary has %d tokens of %d, and says %v", n, limit, got["token_estimate"])
	}
	same(t, "original_count", got["original_count"], int64(62))
	calls := len(host.Recorded().Invoked)
	if calls < 10 || calls > 30 {
		t.Errorf("%d calls", calls)
	}
	seen := map[string]bool{}
	for _, call := range host.Recorded().Invoked {
		for i := range 60 {
			if strings.Contains(call.Params.(map[string]any)["prompt"].(string), fmt.Sprintf("Message %d.", i)) {
				seen[fmt.Sprint(i)] = true
			}
		}
	}
	same(t, "messages that a model has seen", len(seen), 60)
}

func TestSummarizeFails(t *testing.T) {
	t.Parallel()
	a := linkedAgent(t, &teatest.Host{})
	a.do(t, "memory.store", map[string]any{"key": "no list", "value": "text"})
	for _, params := range []map[string]any{
		{},
		{"messages_key": "k", "messages": []any{}},
		{"messages_key": "no list"},
		{"messages": []any{map[string]any{"role": "user"}}},
		{"messages": []any{"a"}, "max_tokens": 0},
		{"messages": "a"},
	} {
		a.fails(t, tea.ValidationError, "memory.summarize", params)
	}
	a.fails(t, tea.NotFound, "memory.summarize", map[string]any{"messages_key": "none"})
	if message := a.fails(t, tea.DependencyMissing, "memory.summarize", map[string]any{"messages": []any{"a"}}); !strings.Contains(message, "install the llm plugin") {
		t.Error(message)
	}
	busy := linkedAgent(t, &teatest.Host{Actions: map[string]func(context.Context, any) (any, error){
		"llm.call": func(context.Context, any) (any, error) { return nil, tea.Errorf(tea.RateLimited, "later") },
	}})
	busy.fails(t, tea.RateLimited, "memory.summarize", map[string]any{"messages": []any{"a"}})
}

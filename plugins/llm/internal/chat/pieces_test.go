package chat

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
)

func TestThinkBlocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		in              string
		text, reasoning string
	}{
		{"a block", "<think>hm</think>yes", "yes", "hm"},
		{"white space", "\n <think>\nhm\n</think>\n\nyes\n", "yes\n", "hm"},
		{"two blocks", "<think>a</think>\n<think>b</think>yes", "yes", "ab"},
		{"an empty block", "<think>\n\n</think>\n\nyes", "yes", ""},
		{"not closed", "<think>hm", "", "hm"},
		{"not closed, with half a tag", "<think>hm</thi", "", "hm</thi"},
		{"only the tag", "<think>", "", ""},
		{"half a tag", "<thi", "<thi", ""},
		{"half a tag after a block", "<think>hm</think>\n<thi", "<thi", "hm"},
		{"no block", "yes", "yes", ""},
		{"no block, white space", "\n yes", "\n yes", ""},
		{"white space only", " \n", " \n", ""},
		{"in the middle of a text", "say <think>hm</think>", "say <think>hm</think>", ""},
		{"another tag", "<thinking>hm</thinking>", "<thinking>hm</thinking>", ""},
		{"nested", "<think>a<think>b</think>yes", "yes", "a<think>b"},
		{"opened by the prompt", "hm\n</think>\n\nyes", "yes", "hm"},
		{"a closing tag within a line", "the tag </think> ends it", "the tag </think> ends it", ""},
		{"a byte order", "<think>hm</think><b>yes</b>", "<b>yes</b>", "hm"},
	} {
		for _, size := range []int{1, 2, 3, 5, 1000} {
			var emitted [2]strings.Builder
			p := Pieces{Emit: func(d Delta) {
				emitted[0].WriteString(d.Text)
				emitted[1].WriteString(d.Reasoning)
			}}
			for rest := c.in; rest != ""; {
				n := min(size, len(rest))
				p.Add(rest[:n], "")
				rest = rest[n:]
			}
			var a Answer
			p.End(&a)
			if a.Text != c.text || a.Reasoning != c.reasoning {
				t.Errorf("%s, in pieces of %d: %q, %q", c.name, size, a.Text, a.Reasoning)
			}
			if c.name == "opened by the prompt" {
				continue // it cannot be known
			}
			if emitted[0].String() != c.text || strings.TrimSpace(emitted[1].String()) != c.reasoning {
				t.Errorf("%s, in pieces of %d: emitted %q, %q", c.name, size, emitted[0].String(), emitted[1].String())
			}
		}
	}
}

func TestAnswerIsBounded(t *testing.T) {
	t.Parallel()
	p := Pieces{Max: 10}
	p.Add("12345", "6789")
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	p.Add("", "01")
	if e := tea.AsError(p.Check()); e == nil || e.Type != tea.ResourceExhausted || e.Retryable {
		t.Errorf("got %v", e)
	}
}

func TestExtraMembersOfPieces(t *testing.T) {
	t.Parallel()
	object := func(name string, v any) map[string]any { return map[string]any{name: v} }
	item := func(pairs ...any) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1]
		}
		return m
	}
	for _, c := range []struct {
		name   string
		pieces []map[string]any
		want   map[string]any
	}{
		{"text", []map[string]any{object("reasoning_content", "a"), object("reasoning_content", "a"), object("reasoning_content", nil)}, object("reasoning_content", "aa")},
		{"nothing", []map[string]any{object("a", ""), object("b", nil), object("c", []any{}), object("d", map[string]any{}), nil}, nil},
		{"a signature in every piece", []map[string]any{object("x", object("thought_signature", "s")), object("x", object("thought_signature", "s"))}, object("x", object("thought_signature", "s"))},
		{"a flag", []map[string]any{object("x", false), object("x", true)}, object("x", true)},
		{
			"details by index",
			[]map[string]any{
				object("reasoning_details", []any{item("type", "reasoning.text", "format", "f", "index", int64(0), "text", "a")}),
				object("reasoning_details", []any{item("type", "reasoning.text", "format", "f", "index", int64(0), "text", "b")}),
				object("reasoning_details", []any{item("type", "reasoning.encrypted", "index", int64(1), "data", "d")}),
				object("reasoning_details", []any{item("type", "reasoning.text", "index", int64(0), "signature", "s")}),
			},
			object("reasoning_details", []any{
				item("type", "reasoning.text", "format", "f", "index", int64(0), "text", "ab", "signature", "s"),
				item("type", "reasoning.encrypted", "index", int64(1), "data", "d"),
			}),
		},
		{
			"blocks without index",
			[]map[string]any{
				object("thinking_blocks", []any{item("type", "thinking", "thinking", "a")}),
				object("thinking_blocks", []any{item("type", "thinking", "thinking", "b", "signature", "s")}),
				object("thinking_blocks", []any{item("type", "thinking", "thinking", "c")}),
			},
			object("thinking_blocks", []any{item("type", "thinking", "thinking", "ab", "signature", "s"), item("type", "thinking", "thinking", "c")}),
		},
		{"another type than before", []map[string]any{object("x", "a"), object("x", []any{"b", nil})}, object("x", []any{"b"})},
		{"an index that is a list", []map[string]any{object("x", []any{item("index", []any{}, "a", int64(1))}), object("x", []any{item("index", []any{}, "a", int64(2))})}, object("x", []any{item("a", int64(1)), item("a", int64(2))})},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var e Extra
			for _, piece := range c.pieces {
				e.Add(piece)
			}
			if diff := cmp.Diff(c.want, e.Members()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUsageIsConsistent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		in, want Usage
	}{
		{"as it should be", Usage{InputTokens: 5, OutputTokens: 3, TotalTokens: 8, CachedTokens: 2, ReasoningTokens: 1}, Usage{InputTokens: 5, OutputTokens: 3, TotalTokens: 8, CachedTokens: 2, ReasoningTokens: 1}},
		{"no total", Usage{InputTokens: 5, OutputTokens: 3}, Usage{InputTokens: 5, OutputTokens: 3, TotalTokens: 8}},
		{"reasoning only in the total", Usage{InputTokens: 5, OutputTokens: 3, TotalTokens: 108}, Usage{InputTokens: 5, OutputTokens: 103, TotalTokens: 108, ReasoningTokens: 100}},
		{"negative", Usage{InputTokens: -5, OutputTokens: 3, TotalTokens: -2, CachedTokens: -1}, Usage{OutputTokens: 3, TotalTokens: 3}},
		{"parts larger than the whole", Usage{InputTokens: 5, OutputTokens: 3, CachedTokens: 50, ReasoningTokens: 30}, Usage{InputTokens: 5, OutputTokens: 3, TotalTokens: 8, CachedTokens: 5, ReasoningTokens: 3}},
	} {
		if diff := cmp.Diff(c.want, c.in.Normalize()); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

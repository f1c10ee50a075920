package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

// completion is an answer or a chunk of a streamed one. Fields that servers may omit,
// send as null or in another form have tolerant types.
type completion struct {
	Object  string          `json:"object"`
	Model   string          `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index        place           `json:"index"`
	Message      *piece          `json:"message"`
	Delta        *piece          `json:"delta"`
	FinishReason word            `json:"finish_reason"`
	Error        json.RawMessage `json:"error"`
}

type piece struct {
	Content          content    `json:"content"`
	Refusal          text       `json:"refusal"`
	ReasoningContent text       `json:"reasoning_content"`
	Reasoning        text       `json:"reasoning"`
	Thinking         text       `json:"thinking"`
	ToolCalls        []callPart `json:"tool_calls"`
	FunctionCall     *function  `json:"function_call"`
	// extra are the members that the protocol does not define, including those for
	// reasoning, and extraSize is their length in JSON.
	extra     map[string]any
	extraSize int
}

// UnmarshalJSON keeps unknown members, which are sent back with the turn.
func (p *piece) UnmarshalJSON(data []byte) error {
	*p = piece{}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return err
	}
	known := map[string]any{
		"content": &p.Content, "refusal": &p.Refusal, "tool_calls": &p.ToolCalls, "function_call": &p.FunctionCall,
		"reasoning_content": &p.ReasoningContent, "reasoning": &p.Reasoning, "thinking": &p.Thinking, "role": nil,
	}
	for name, raw := range members {
		field, ok := known[name]
		if ok && field != nil {
			if err := json.Unmarshal(raw, field); err != nil {
				return err
			}
		}
		if ok && !isReasoning(name) {
			continue
		}
		v, err := value.Decode(raw)
		if err != nil {
			return err
		}
		if p.extra == nil {
			p.extra = map[string]any{}
		}
		p.extra[name] = v
		p.extraSize += len(raw)
	}
	return nil
}

// isReasoning reports whether a member that the assembly reads is also sent back with
// the turn.
func isReasoning(member string) bool {
	return member == "reasoning_content" || member == "reasoning" || member == "thinking"
}

// reasoning is the model's reasoning, under whichever name it was sent.
func (p *piece) reasoning() string {
	for _, t := range []text{p.ReasoningContent, p.Reasoning, p.Thinking, p.Content.reasoning} {
		if t != "" {
			return string(t)
		}
	}
	return ""
}

// text is a string, null, or a list of parts, of which only text parts count.
type text string

func (t *text) UnmarshalJSON(data []byte) error {
	*t = ""
	var s string
	if json.Unmarshal(data, &s) == nil {
		*t = text(s)
		return nil
	}
	var parts []json.RawMessage
	if json.Unmarshal(data, &parts) != nil {
		return nil // a server-specific object is not text
	}
	for _, raw := range parts {
		var part struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(raw, &s) == nil {
			*t += text(s)
		} else if json.Unmarshal(raw, &part) == nil {
			*t += text(part.Text)
		}
	}
	return nil
}

// content is a text whose parts may be reasoning.
type content struct{ answer, reasoning text }

func (c *content) UnmarshalJSON(data []byte) error {
	*c = content{}
	var parts []json.RawMessage
	if data[0] == '[' && json.Unmarshal(data, &parts) == nil {
		for _, raw := range parts {
			var part struct {
				Thinking text `json:"thinking"`
			}
			if json.Unmarshal(raw, &part) == nil {
				c.reasoning += part.Thinking
			}
		}
	}
	return c.answer.UnmarshalJSON(data)
}

// word is a string. Another scalar is read as its text, null as "".
type word string

func (w *word) UnmarshalJSON(data []byte) error {
	s := string(data)
	if data[0] == '"' {
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
	}
	if s == "null" {
		s = ""
	}
	*w = word(s)
	return nil
}

// isStream reports whether an answer is a stream, which some servers send
// without being asked.
func isStream(body []byte) bool {
	body = bytes.TrimLeft(body, "\r\n")
	for _, start := range []string{"data:", "event:", "id:", ":"} {
		if bytes.HasPrefix(body, []byte(start)) {
			return true
		}
	}
	return false
}

// readAnswer reads an answer that is not streamed.
func readAnswer(ctx context.Context, reply httpapi.Reply) (*chat.Answer, error) {
	body, err := reply.ReadAll()
	if err != nil {
		return nil, err
	}
	c, err := decode(body)
	if err != nil && isStream(body) {
		reply.Body = io.NopCloser(bytes.NewReader(body))
		return readStream(ctx, reply, 0, nil)
	}
	if err != nil {
		return nil, err
	}
	a := newAssembly(reply.MaxAnswer(), nil)
	a.add(c)
	if !a.seen {
		return nil, tea.Errorf(tea.ConnectionError, "the server's answer has no choices")
	}
	if err := a.pieces.Check(); err != nil {
		return nil, err
	}
	return a.answer(), nil
}

// decode reads an answer or a chunk. If it contains an error, decode returns that
// error.
func decode(data []byte) (*completion, error) {
	if c := plainChunk(data); c != nil {
		return c, nil
	}
	return decodeAny(data)
}

func decodeAny(data []byte) (*completion, error) {
	var list []json.RawMessage
	if bytes.HasPrefix(data, []byte("[")) && json.Unmarshal(data, &list) == nil && len(list) == 1 {
		data = list[0] // Google's servers wrap an error in a list
	}
	var c completion
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, httpapi.NotAnAnswer(data, "an answer", err)
	}
	if httpapi.IsError(c.Error) {
		return nil, httpapi.StreamError(c.Error)
	}
	if c.Object == "error" {
		return nil, httpapi.StreamError(data)
	}
	for _, choice := range c.Choices {
		if choice.Index == 0 && httpapi.IsError(choice.Error) {
			return nil, httpapi.StreamError(choice.Error)
		}
	}
	return &c, nil
}

// count is a number of tokens. Servers also send null, strings and fractions.
type count int

func (c *count) UnmarshalJSON(data []byte) error {
	n, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64)
	if *c = 0; err == nil && n > 0 {
		*c = count(min(n, 1e15))
	}
	return nil
}

// toUsage reads the token counts; nil if there are none.
func toUsage(raw json.RawMessage) *chat.Usage {
	var u struct {
		Prompt     count `json:"prompt_tokens"`
		Completion count `json:"completion_tokens"`
		Total      count `json:"total_tokens"`
		Input      struct {
			Cached  count `json:"cached_tokens"`
			Written count `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
		Output struct {
			Reasoning count `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
		// Names that other servers use.
		CacheHit  count `json:"prompt_cache_hit_tokens"`
		CacheRead count `json:"cache_read_input_tokens"`
		Cached    count `json:"cached_tokens"`
		Reasoning count `json:"reasoning_tokens"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &u) != nil || u.Prompt+u.Completion+u.Total == 0 {
		return nil
	}
	usage := chat.Usage{
		InputTokens: int(u.Prompt), OutputTokens: int(u.Completion), TotalTokens: int(u.Total),
		CacheWriteTokens: int(u.Input.Written),
		CachedTokens:     int(max(u.Input.Cached, u.CacheHit, u.CacheRead, u.Cached)),
		ReasoningTokens:  int(max(u.Output.Reasoning, u.Reasoning)),
	}.Normalize()
	return &usage
}

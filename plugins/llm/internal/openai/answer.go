package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	"github.com/the-edge-agent/tea/plugins/llm/internal/transport"
	tea "github.com/the-edge-agent/tea/sdk"
)

// completion is an answer or a chunk of a streamed one. What a server may
// leave out, send as null or in another shape is held loosely.
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
}

// reasoning is what the model thought, under whichever name it came.
func (p *piece) reasoning() string {
	for _, t := range []text{p.ReasoningContent, p.Reasoning, p.Thinking, p.Content.thought} {
		if t != "" {
			return string(t)
		}
	}
	return ""
}

// text is a string, null, or a list of parts of which the text ones count.
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
		return nil // an object of the server's own is no text
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

// content is a text whose parts may hold thoughts too.
type content struct{ said, thought text }

func (c *content) UnmarshalJSON(data []byte) error {
	*c = content{}
	var parts []json.RawMessage
	if json.Unmarshal(data, &parts) == nil {
		for _, raw := range parts {
			var part struct {
				Thinking text `json:"thinking"`
			}
			if json.Unmarshal(raw, &part) == nil {
				c.thought += part.Thinking
			}
		}
	}
	return c.said.UnmarshalJSON(data)
}

// word is a string; of another scalar it is the text, of null nothing.
type word string

func (w *word) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) != nil {
		s = string(data)
	}
	if s == "null" {
		s = ""
	}
	*w = word(s)
	return nil
}

// isStream tells whether an answer is a stream, which some servers send
// although nobody asked for one.
func isStream(body []byte) bool {
	body = bytes.TrimLeft(body, "\r\n")
	for _, start := range []string{"data:", "event:", "id:", ":"} {
		if bytes.HasPrefix(body, []byte(start)) {
			return true
		}
	}
	return false
}

// readAnswer reads an answer that came in one.
func readAnswer(ctx context.Context, reply transport.Reply) (*chat.Answer, error) {
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
	a := newAssembly(nil)
	a.add(c)
	if !a.seen {
		return nil, tea.Errorf(tea.ConnectionError, "the server's answer has no choices")
	}
	return a.answer(), nil
}

// decode reads an answer or a chunk; one that reports an error is one.
func decode(data []byte) (*completion, error) {
	var list []json.RawMessage
	if json.Unmarshal(data, &list) == nil && len(list) == 1 {
		data = list[0] // Google's servers put an error into a list
	}
	var c completion
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, transport.NoAnswer(data, "what is no answer", err)
	}
	if transport.IsError(c.Error) {
		return nil, transport.StreamError(c.Error)
	}
	if c.Object == "error" {
		return nil, transport.StreamError(data)
	}
	for _, choice := range c.Choices {
		if choice.Index == 0 && transport.IsError(choice.Error) {
			return nil, transport.StreamError(choice.Error)
		}
	}
	return &c, nil
}

// toUsage reads the token counts; nil where there are none.
func toUsage(raw json.RawMessage) *chat.Usage {
	var u struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &u) != nil || u.Prompt+u.Completion+u.Total == 0 {
		return nil
	}
	return &chat.Usage{InputTokens: u.Prompt, OutputTokens: u.Completion, TotalTokens: max(u.Total, u.Prompt+u.Completion)}
}

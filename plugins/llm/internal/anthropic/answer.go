package anthropic

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	"github.com/the-edge-agent/tea/plugins/llm/internal/stream"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

// message is an answer, or the beginning of a streamed one.
type message struct {
	Type       string            `json:"type"`
	Model      string            `json:"model"`
	Content    []json.RawMessage `json:"content"`
	StopReason string            `json:"stop_reason"`
	Usage      usage             `json:"usage"`
	Error      json.RawMessage   `json:"error"`
}

// event is an event of a stream.
type event struct {
	Type    string          `json:"type"`
	Message message         `json:"message"`
	Index   int             `json:"index"`
	Block   json.RawMessage `json:"content_block"`
	Delta   struct {
		Text        string `json:"text"`
		Thinking    string `json:"thinking"`
		Signature   string `json:"signature"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
	Usage usage `json:"usage"`
}

// usage counts tokens. The counts of a later event replace those of an earlier one.
type usage struct {
	Input      *int `json:"input_tokens"`
	Output     *int `json:"output_tokens"`
	CacheRead  *int `json:"cache_read_input_tokens"`
	CacheWrite *int `json:"cache_creation_input_tokens"`
	Creation   struct {
		Long *int `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Details struct {
		Thinking *int `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// block is a part of an answer. Its raw form is kept, since the server requires some parts
// unchanged in the next request.
type block struct {
	raw       map[string]any
	kind      string
	text      strings.Builder // of a text or thinking
	signature string
	input     strings.Builder // the arguments of a tool
}

// assembly assembles an answer from events.
type assembly struct {
	pieces chat.Pieces
	blocks []*block
	model  string
	finish string
	counts chat.Usage
	done   bool
}

// Complete implements [chat.Assembly].
func (a *assembly) Complete() bool { return a.done }

// Event implements [chat.Assembly].
func (a *assembly) Event(name string, data []byte) (grew, last bool, err error) {
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return false, false, httpapi.NotAnAnswer(data, "an answer", err)
	}
	switch e.Type {
	case "error":
		return false, false, httpapi.StreamError(data)
	case "message":
		return true, true, a.message(data)
	case "message_start":
		a.model = e.Message.Model
		a.count(e.Message.Usage)
	case "content_block_start":
		return true, false, a.begin(e.Block)
	case "content_block_delta":
		return a.delta(e), false, nil
	case "message_delta":
		if e.Delta.StopReason != "" {
			a.finish = e.Delta.StopReason
		}
		a.count(e.Usage)
	case "message_stop":
		a.done = true
		return false, true, nil
	case "":
		var m message
		if name == "error" || json.Unmarshal(data, &m) == nil && httpapi.IsError(m.Error) {
			return false, false, httpapi.StreamError(data)
		}
	}
	return false, false, nil // a ping, or an event of a later version
}

// message consumes a complete answer.
func (a *assembly) message(data []byte) error {
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		return httpapi.NotAnAnswer(data, "an answer", err)
	}
	for _, raw := range m.Content {
		if err := a.begin(raw); err != nil {
			return err
		}
	}
	a.model, a.finish, a.done = m.Model, m.StopReason, true
	a.count(m.Usage)
	return nil
}

// begin adds a block, which is complete unless the answer is streamed.
func (a *assembly) begin(raw json.RawMessage) error {
	v, err := value.Decode(raw)
	object, ok := v.(map[string]any)
	if err != nil || !ok {
		return httpapi.NotAnAnswer(raw, "a block of an answer", errNoMessage)
	}
	b := &block{raw: object}
	b.kind, _ = object["type"].(string)
	b.signature, _ = object["signature"].(string)
	a.blocks = append(a.blocks, b)
	a.pieces.Size += len(raw)
	text, _ := object["text"].(string)
	thinking, _ := object["thinking"].(string)
	a.say(b, text, thinking)
	return nil
}

// say appends to the text of a block, or to its thinking.
func (a *assembly) say(b *block, text, thinking string) {
	switch b.kind {
	case "text":
		b.text.WriteString(text)
		a.pieces.Add(text, "")
	case "thinking":
		b.text.WriteString(thinking)
		a.pieces.Add("", thinking)
	}
}

// delta continues a block and reports whether it is part of the answer.
func (a *assembly) delta(e event) bool {
	if e.Index < 0 || e.Index >= len(a.blocks) {
		return false
	}
	b := a.blocks[e.Index]
	a.say(b, e.Delta.Text, e.Delta.Thinking)
	b.signature += e.Delta.Signature
	b.input.WriteString(e.Delta.PartialJSON)
	a.pieces.Size += len(e.Delta.Signature) + len(e.Delta.PartialJSON)
	return true
}

// count replaces the counts that u has.
func (a *assembly) count(u usage) {
	for _, c := range []struct {
		to   *int
		from *int
	}{
		{&a.counts.InputTokens, u.Input},
		{&a.counts.OutputTokens, u.Output},
		{&a.counts.CachedTokens, u.CacheRead},
		{&a.counts.CacheWriteTokens, u.CacheWrite},
		{&a.counts.CacheWriteLongTokens, u.Creation.Long},
		{&a.counts.ReasoningTokens, u.Details.Thinking},
	} {
		if c.from != nil {
			*c.to = *c.from
		}
	}
}

// item converts a block to a part of the turn.
func (b *block) item() chat.Item {
	switch b.kind {
	case "text":
		return chat.Item{Text: stream.Join(b.text.String())}
	case "tool_use":
		call := &chat.ToolCall{Arguments: stream.Join(b.input.String())}
		call.ID, _ = b.raw["id"].(string)
		call.Name, _ = b.raw["name"].(string)
		if call.Arguments == "" {
			if raw, err := value.Encode(b.raw["input"]); err == nil {
				call.Arguments = stream.Join(string(raw))
			}
		}
		return chat.Item{Call: call}
	case "thinking":
		b.raw["thinking"] = stream.Join(b.text.String())
		if b.signature != "" {
			b.raw["signature"] = b.signature
		}
	default:
		if v, err := value.Decode([]byte(b.input.String())); err == nil {
			b.raw["input"] = v
		}
	}
	return chat.Item{Own: b.raw}
}

func (a *assembly) answer() *chat.Answer {
	answer := &chat.Answer{Model: a.model}
	a.pieces.End(answer)
	var items []chat.Item
	for _, b := range a.blocks {
		items = append(items, b.item())
	}
	answer.KeepItems(Name, items)
	// The protocol counts the parts of the input separately.
	a.counts.InputTokens += a.counts.CachedTokens + a.counts.CacheWriteTokens
	if counts := a.counts.Normalize(); counts.TotalTokens > 0 {
		answer.Usage = &counts
	}
	answer.Finish(a.finish)
	return answer
}

// errNoMessage is the reason why JSON is not an answer.
var errNoMessage = errors.New("it has another form")

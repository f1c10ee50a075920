package openai

import (
	"encoding/json"

	"github.com/the-edge-agent/tea/sdk/value"
)

// plainChunk reads a chunk that has only a piece of text, like nearly all chunks of a
// stream. It reads the chunk in one pass; the tolerant types need a pass per level and
// several times as long. It returns nil for any other chunk.
func plainChunk(data []byte) *completion {
	v, err := value.Decode(data)
	object, ok := v.(map[string]any)
	if err != nil || !ok {
		return nil
	}
	var c completion
	for name, v := range object {
		ok := true
		switch name {
		case "object":
			c.Object, ok = v.(string)
		case "model":
			c.Model, ok = v.(string)
		case "choices":
			c.Choices = plainChoices(v)
			ok = c.Choices != nil
		case "usage":
			c.Usage, ok = json.RawMessage("null"), v == nil
		case "id", "created", "system_fingerprint", "service_tier", "provider", "obfuscation":
		default:
			return nil
		}
		if !ok {
			return nil
		}
	}
	if c.Choices == nil || c.Object == "error" {
		return nil
	}
	return &c
}

func plainChoices(v any) []choice {
	list, _ := v.([]any)
	if len(list) != 1 {
		return nil
	}
	object, _ := list[0].(map[string]any)
	var c choice
	for name, v := range object {
		ok := true
		switch name {
		case "index":
			ok = v == int64(0)
		case "delta":
			c.Delta = plainPiece(v)
			ok = c.Delta != nil
		case "finish_reason":
			var reason string
			if v != nil {
				reason, ok = v.(string)
			}
			c.FinishReason = word(reason)
		case "logprobs", "native_finish_reason", "stop_reason":
		default:
			return nil
		}
		if !ok {
			return nil
		}
	}
	if c.Delta == nil || c.FinishReason == "null" {
		return nil
	}
	return []choice{c}
}

func plainPiece(v any) *piece {
	object, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	var p piece
	for name, v := range object {
		switch {
		case name == "role":
		case name == "content" && v != nil:
			said, ok := v.(string)
			if !ok {
				return nil
			}
			p.Content.answer = text(said)
		case name == "content", name == "refusal" && v == nil, name == "tool_calls" && v == nil, name == "function_call" && v == nil:
		default:
			return nil
		}
	}
	return &p
}

package openai

import (
	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
)

// toBody converts a request to the protocol's form.
func toBody(req *chat.Request) map[string]any {
	body := map[string]any{"model": req.Model, "messages": toMessages(req.Messages)}
	if req.Temperature != nil {
		body["temperature"] = *req.Temperature
	}
	if req.TopP != nil {
		body["top_p"] = *req.TopP
	}
	if req.MaxTokens > 0 {
		body["max_tokens"] = req.MaxTokens
	}
	if len(req.Stop) > 0 {
		body["stop"] = req.Stop
	}
	if req.Seed != nil {
		body["seed"] = *req.Seed
	}
	if req.Format != nil {
		body["response_format"] = toFormat(req.Format)
	}
	if len(req.Tools) > 0 {
		body["tools"] = toTools(req.Tools)
		if req.ToolChoice != "" {
			body["tool_choice"] = toChoice(req.ToolChoice)
		}
	}
	return body
}

func toMessages(messages []chat.Message) []any {
	out := make([]any, len(messages))
	for i, m := range messages {
		msg := map[string]any{"role": m.Role}
		if m.Content.HasMedia() {
			msg["content"] = m.Content.Parts()
		} else {
			msg["content"] = m.Content.Text()
		}
		if m.Name != "" {
			msg["name"] = m.Name
		}
		if m.ToolCallID != "" {
			msg["tool_call_id"] = m.ToolCallID
		}
		if len(m.ToolCalls) > 0 {
			msg["tool_calls"] = toCalls(m.ToolCalls)
		}
		chat.Merge(msg, m.Dialect())
		out[i] = msg
	}
	return out
}

func toCalls(calls []chat.ToolCall) []any {
	out := make([]any, len(calls))
	for i, c := range calls {
		arguments := c.Arguments
		if object, err := c.Object(); err != nil || len(object) == 0 {
			arguments = "{}" // servers refuse arguments other than an object
		}
		call := map[string]any{"id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": arguments}}
		chat.Merge(call, c.Extra)
		out[i] = call
	}
	return out
}

func toTools(tools []chat.Tool) []any {
	out := make([]any, len(tools))
	for i, t := range tools {
		out[i] = map[string]any{"type": "function", "function": map[string]any{
			"name": t.Name, "description": t.Description, "parameters": t.Parameters,
		}}
	}
	return out
}

func toChoice(choice string) any {
	switch choice {
	case "auto", "none", "required":
		return choice
	}
	return map[string]any{"type": "function", "function": map[string]any{"name": choice}}
}

func toFormat(f *chat.Format) any {
	if f.Schema == nil {
		return map[string]any{"type": "json_object"}
	}
	return map[string]any{"type": "json_schema", "json_schema": map[string]any{
		"name": "answer", "schema": f.Schema, "strict": IsStrict(f.Schema),
	}}
}

// IsStrict reports whether a schema meets the conditions of OpenAI's strict mode, which
// refuses others: every object is closed, and every property required.
func IsStrict(v any) bool {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if !IsStrict(e) {
				return false
			}
		}
	case map[string]any:
		if properties, ok := v["properties"].(map[string]any); ok || v["type"] == "object" {
			required, _ := v["required"].([]any)
			if v["additionalProperties"] != false || len(required) != len(properties) {
				return false
			}
		}
		for _, e := range v {
			if !IsStrict(e) {
				return false
			}
		}
	}
	return true
}

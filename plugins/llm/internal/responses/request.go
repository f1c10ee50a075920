package responses

import (
	"cmp"
	"strings"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	"github.com/the-edge-agent/tea/plugins/llm/internal/openai"
)

// encrypted asks for reasoning in a form that can be sent back.
const encrypted = "reasoning.encrypted_content"

// toBody converts a request to the protocol's form. notSent are the parameters that the
// protocol does not have. The server stores nothing: the conversation is in the messages.
func toBody(req *chat.Request) (body map[string]any, notSent []string) {
	body = map[string]any{"model": req.Model, "input": toInput(req.Messages), "store": false}
	if canReason(req.Model) {
		body["include"] = []any{encrypted}
	}
	if req.Temperature != nil {
		body["temperature"] = *req.Temperature
	}
	if req.TopP != nil {
		body["top_p"] = *req.TopP
	}
	if req.MaxTokens > 0 {
		body["max_output_tokens"] = req.MaxTokens
	}
	if len(req.Stop) > 0 {
		notSent = append(notSent, "stop")
	}
	if req.Seed != nil {
		notSent = append(notSent, "seed")
	}
	if req.Format != nil {
		body["text"] = map[string]any{"format": toFormat(req.Format)}
	}
	if len(req.Tools) > 0 {
		body["tools"] = toTools(req.Tools)
		if req.ToolChoice != "" {
			body["tool_choice"] = toChoice(req.ToolChoice)
		}
	}
	return body, notSent
}

// canReason reports whether a model may have encrypted reasoning. The server refuses to
// include it for those that have none.
func canReason(model string) bool {
	model = strings.TrimPrefix(model, "ft:")
	return !strings.HasPrefix(model, "gpt-4") && !strings.HasPrefix(model, "gpt-3")
}

func toFormat(f *chat.Format) any {
	if f.Schema == nil {
		return map[string]any{"type": "json_object"}
	}
	return map[string]any{"type": "json_schema", "name": "answer", "schema": f.Schema, "strict": openai.IsStrict(f.Schema)}
}

func toTools(tools []chat.Tool) []any {
	out := make([]any, len(tools))
	for i, t := range tools {
		out[i] = map[string]any{"type": "function", "name": t.Name, "description": t.Description, "parameters": t.Parameters, "strict": false}
	}
	return out
}

func toChoice(choice string) any {
	switch choice {
	case "auto", "none", "required":
		return choice
	}
	return map[string]any{"type": "function", "name": choice}
}

// toInput converts the conversation to the items of the protocol.
func toInput(messages []chat.Message) []any {
	input := []any{}
	for _, m := range messages {
		switch m.Role {
		case "assistant":
			input = append(input, toTurn(m)...)
		case "tool":
			input = append(input, map[string]any{"type": "function_call_output", "call_id": chat.CallID(m.ToolCallID), "output": toContent(m.Content)})
		default:
			input = append(input, map[string]any{"role": m.Role, "content": toContent(m.Content)})
		}
	}
	return input
}

// toTurn converts a turn of the model.
func toTurn(m chat.Message) []any {
	var out []any
	for _, item := range m.Items(Name) {
		switch {
		case item.Call != nil:
			arguments := item.Call.Arguments
			if object := item.Call.ObjectOf(); len(object) == 0 {
				arguments = "{}" // the server refuses other arguments than an object
			}
			out = append(out, map[string]any{"type": "function_call", "call_id": chat.CallID(item.Call.ID), "name": item.Call.Name, "arguments": arguments})
		case item.Text != "":
			message := map[string]any{"role": "assistant", "content": item.Text}
			chat.Merge(message, item.Own)
			out = append(out, message)
		case item.Own != nil:
			out = append(out, item.Own)
		}
	}
	return out
}

// toContent returns a text, or a list of texts, images and files.
func toContent(content chat.Content) any {
	if !content.HasMedia() {
		return content.Text()
	}
	var parts []any
	for _, part := range content {
		switch {
		case part.Image != "":
			parts = append(parts, map[string]any{"type": "input_image", "image_url": part.Image})
		case part.File != "":
			file := map[string]any{"type": "input_file"}
			if _, _, ok := chat.SplitData(part.File); ok {
				file["file_data"], file["filename"] = part.File, cmp.Or(part.Name, "document.pdf")
			} else {
				file["file_url"] = part.File
			}
			parts = append(parts, file)
		default:
			parts = append(parts, map[string]any{"type": "input_text", "text": part.Text})
		}
	}
	return parts
}

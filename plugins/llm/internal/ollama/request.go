package ollama

import (
	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
)

// toBody converts a request to the protocol's form.
func toBody(req *chat.Request) (map[string]any, error) {
	messages, err := toMessages(req.Messages)
	if err != nil {
		return nil, err
	}
	body := map[string]any{"model": req.Model, "messages": messages}
	if options := toOptions(req); len(options) > 0 {
		body["options"] = options
	}
	if req.Format != nil {
		body["format"] = toFormat(req.Format)
	}
	if tools := toTools(req.Tools, req.ToolChoice); len(tools) > 0 {
		body["tools"] = tools
	}
	return body, nil
}

func toOptions(req *chat.Request) map[string]any {
	options := map[string]any{}
	if req.Temperature != nil {
		options["temperature"] = *req.Temperature
	}
	if req.TopP != nil {
		options["top_p"] = *req.TopP
	}
	if req.MaxTokens > 0 {
		options["num_predict"] = req.MaxTokens
	}
	if len(req.Stop) > 0 {
		options["stop"] = req.Stop
	}
	if req.Seed != nil {
		options["seed"] = *req.Seed
	}
	return options
}

func toFormat(f *chat.Format) any {
	if f.Schema == nil {
		return "json"
	}
	return f.Schema
}

func toMessages(messages []chat.Message) ([]any, error) {
	out := make([]any, len(messages))
	names := map[string]string{}
	for i, m := range messages {
		msg := map[string]any{"role": m.Role, "content": m.Content.Text()}
		if m.Role == "developer" {
			msg["role"] = "system"
		}
		images, err := toImages(m.Content)
		if err != nil {
			return nil, err
		}
		if len(images) > 0 {
			msg["images"] = images
		}
		if len(m.ToolCalls) > 0 {
			msg["tool_calls"] = toCalls(m.ToolCalls)
		}
		for _, c := range m.ToolCalls {
			names[c.ID] = c.Name
		}
		if name := names[m.ToolCallID]; m.Role == "tool" && name != "" {
			msg["tool_name"] = name
		}
		chat.Merge(msg, m.Dialect())
		out[i] = msg
	}
	return out, nil
}

// toImages returns the images as plain Base64, the only form that Ollama accepts.
func toImages(content chat.Content) ([]string, error) {
	var images []string
	for _, part := range content {
		if part.File != "" {
			return nil, tea.Errorf(tea.ValidationError, "ollama accepts text and images, but no files; extract the text of the file first")
		}
		if part.Image == "" {
			continue
		}
		_, data, ok := chat.SplitData(part.Image)
		if !ok {
			return nil, tea.Errorf(tea.ValidationError, "ollama accepts images as data only: use {type: image, data: BASE64} or a data: URL")
		}
		images = append(images, data)
	}
	return images, nil
}

func toCalls(calls []chat.ToolCall) []any {
	out := make([]any, len(calls))
	for i, c := range calls {
		call := map[string]any{"function": map[string]any{"name": c.Name, "arguments": c.ObjectOf()}}
		chat.Merge(call, c.Extra)
		out[i] = call
	}
	return out
}

// toTools returns the tools to offer. The protocol has no tool_choice: none offers no
// tool, a name only that tool, and otherwise the model chooses.
func toTools(tools []chat.Tool, choice string) []any {
	var out []any
	for _, t := range tools {
		switch choice {
		case "", "auto", "required", t.Name:
			out = append(out, map[string]any{"type": "function", "function": map[string]any{
				"name": t.Name, "description": t.Description, "parameters": t.Parameters,
			}})
		}
	}
	return out
}

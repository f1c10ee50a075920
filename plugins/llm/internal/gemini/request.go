package gemini

import (
	"strings"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	"github.com/the-edge-agent/tea/sdk/value"
)

// noSignature is the documented signature for a call that another model made.
const noSignature = "skip_thought_signature_validator"

func textPart(text string) map[string]any { return map[string]any{"text": text} }

// toBody converts a request to the protocol's form.
func toBody(req *chat.Request) map[string]any {
	system, contents := toContents(req.Messages)
	body := map[string]any{"contents": contents}
	if len(system) > 0 {
		body["systemInstruction"] = map[string]any{"parts": system}
	}
	if config := toConfig(req); len(config) > 0 {
		body["generationConfig"] = config
	}
	if len(req.Tools) > 0 {
		body["tools"] = []any{map[string]any{"functionDeclarations": toTools(req.Tools)}}
		if req.ToolChoice != "" {
			body["toolConfig"] = map[string]any{"functionCallingConfig": toChoice(req.ToolChoice)}
		}
	}
	return body
}

func toConfig(req *chat.Request) map[string]any {
	config := map[string]any{}
	if req.Temperature != nil {
		config["temperature"] = *req.Temperature
	}
	if req.TopP != nil {
		config["topP"] = *req.TopP
	}
	if req.MaxTokens > 0 {
		config["maxOutputTokens"] = req.MaxTokens
	}
	if len(req.Stop) > 0 {
		config["stopSequences"] = req.Stop
	}
	if req.Seed != nil {
		config["seed"] = *req.Seed
	}
	if req.Format != nil {
		config["responseMimeType"] = "application/json"
		if req.Format.Schema != nil {
			config["responseJsonSchema"] = req.Format.Schema
		}
	}
	return config
}

func toTools(tools []chat.Tool) []any {
	out := make([]any, len(tools))
	for i, t := range tools {
		out[i] = map[string]any{"name": t.Name, "description": t.Description, "parametersJsonSchema": t.Parameters}
	}
	return out
}

func toChoice(choice string) map[string]any {
	switch choice {
	case "auto", "none":
		return map[string]any{"mode": strings.ToUpper(choice)}
	case "required":
		return map[string]any{"mode": "ANY"}
	}
	return map[string]any{"mode": "ANY", "allowedFunctionNames": []any{choice}}
}

// toContents separates the instructions from the conversation, in which the results of
// calls name the function.
func toContents(messages []chat.Message) (system, contents []any) {
	functions := map[string]map[string]any{}
	for _, m := range messages {
		role := "user"
		var parts []any
		switch m.Role {
		case "system", "developer":
			system = append(system, textPart(m.Content.Text()))
			continue
		case "assistant":
			role, parts = "model", toTurn(m, functions)
		case "tool":
			result := map[string]any{"response": toResult(m.Content.Text())}
			for name, v := range functions[m.ToolCallID] {
				result[name] = v
			}
			parts = append([]any{map[string]any{"functionResponse": result}}, toMedia(m.Content)...)
		default:
			parts = toParts(m.Content)
		}
		contents = addContent(contents, role, parts)
	}
	return system, contents
}

// addContent appends parts to the last content if it has the same role, otherwise as a
// content.
func addContent(contents []any, role string, parts []any) []any {
	if len(parts) == 0 {
		return contents
	}
	if len(contents) > 0 {
		if last := contents[len(contents)-1].(map[string]any); last["role"] == role {
			last["parts"] = append(last["parts"].([]any), parts...)
			return contents
		}
	}
	return append(contents, map[string]any{"role": role, "parts": parts})
}

// toTurn converts a turn of the model, and stores what the results of its calls name.
func toTurn(m chat.Message, functions map[string]map[string]any) []any {
	var parts []any
	called := false
	for _, item := range m.Items(Name) {
		part := map[string]any{}
		switch {
		case item.Call != nil:
			function := map[string]any{"name": item.Call.Name}
			if id, ok := item.Own["id"]; ok {
				function["id"] = id
			}
			functions[item.Call.ID] = function
			call := map[string]any{"args": item.Call.ObjectOf()}
			for name, v := range function {
				call[name] = v
			}
			part["functionCall"] = call
			if signature, ok := item.Own["thoughtSignature"]; ok {
				part["thoughtSignature"] = signature
			} else if !called {
				part["thoughtSignature"] = noSignature
			}
			called = true
		case item.Own["thoughtSignature"] != nil && item.Own["part"] == nil:
			part = map[string]any{"text": item.Text, "thoughtSignature": item.Own["thoughtSignature"]}
		case item.Own != nil:
			part, _ = item.Own["part"].(map[string]any)
		default:
			part["text"] = item.Text
		}
		parts = append(parts, part)
	}
	return parts
}

// toResult returns the result of a tool as an object, which the protocol requires.
func toResult(text string) map[string]any {
	v, err := value.Decode([]byte(text))
	if err != nil {
		v = text
	}
	if object, ok := v.(map[string]any); ok {
		return object
	}
	return map[string]any{"result": v}
}

func toParts(content chat.Content) []any {
	var parts []any
	for _, part := range content {
		if part.Image == "" && part.File == "" {
			parts = append(parts, textPart(part.Text))
			continue
		}
		parts = append(parts, toMedia(chat.Content{part})...)
	}
	return parts
}

// toMedia converts images and files.
func toMedia(content chat.Content) []any {
	var parts []any
	for _, part := range content {
		url := part.Image + part.File // one of them is empty
		if mediaType, data, ok := chat.SplitData(url); ok {
			parts = append(parts, map[string]any{"inlineData": map[string]any{"mimeType": mediaType, "data": data}})
		} else if url != "" {
			parts = append(parts, map[string]any{"fileData": map[string]any{"fileUri": url}})
		}
	}
	return parts
}

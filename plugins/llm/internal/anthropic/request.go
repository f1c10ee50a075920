package anthropic

import (
	"cmp"
	"encoding/base64"
	"maps"
	"strings"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
)

// defaultMaxTokens is the limit for an answer of an unknown model.
const defaultMaxTokens = 4096

// jsonOnly asks for JSON without a schema, which the protocol cannot request.
const jsonOnly = "Answer with JSON only, without any other text."

// toBody converts a request to the protocol's form. notSent are the parameters that the
// protocol does not have.
func (p *Provider) toBody(req *chat.Request) (body map[string]any, notSent []string, err error) {
	system, messages, err := toMessages(req.Messages)
	if err != nil {
		return nil, nil, err
	}
	body = map[string]any{"model": req.Model, "messages": messages, "max_tokens": cmp.Or(req.MaxTokens, p.options.MaxTokens, defaultMaxTokens)}
	if req.Format != nil && req.Format.Schema == nil {
		system = append(system, textBlock(jsonOnly))
	}
	if req.Format != nil && req.Format.Schema != nil {
		body["output_config"] = map[string]any{"format": map[string]any{"type": "json_schema", "schema": req.Format.Schema}}
	}
	if len(system) > 0 {
		body["system"] = system
	}
	if req.Temperature != nil {
		body["temperature"] = min(*req.Temperature, 1) // the largest value here; other protocols allow 2
	}
	if req.TopP != nil {
		body["top_p"] = *req.TopP
	}
	if len(req.Stop) > 0 {
		body["stop_sequences"] = req.Stop
	}
	if req.Seed != nil {
		notSent = append(notSent, "seed")
	}
	if len(req.Tools) > 0 {
		body["tools"] = toTools(req.Tools)
		if req.ToolChoice != "" {
			body["tool_choice"] = toChoice(req.ToolChoice)
		}
	}
	p.markCache(req, system, messages)
	return body, notSent, nil
}

func textBlock(text string) map[string]any { return map[string]any{"type": "text", "text": text} }

// markCache marks the end of the instructions, which also covers the tools, and the end of
// the conversation: the server caches up to there, and finds it in the next request.
func (p *Provider) markCache(req *chat.Request, system, messages []any) {
	if p.options.Cache == "off" || p.options.Cache == "" && len(req.Tools) == 0 {
		return
	}
	mark := map[string]any{"type": "ephemeral"}
	if p.options.Cache == "1h" {
		mark["ttl"] = "1h"
	}
	ends := [][]any{system}
	if len(messages) > 0 {
		ends = append(ends, messages[len(messages)-1].(map[string]any)["content"].([]any))
	}
	for _, blocks := range ends {
		if len(blocks) == 0 {
			continue
		}
		block := maps.Clone(blocks[len(blocks)-1].(map[string]any))
		if kind := block["type"]; kind != "thinking" && kind != "redacted_thinking" { // the protocol does not allow a mark there
			block["cache_control"] = mark
			blocks[len(blocks)-1] = block
		}
	}
}

// toMessages separates the instructions from the conversation, whose turns alternate
// between user and assistant.
func toMessages(messages []chat.Message) (system, turns []any, err error) {
	for _, m := range messages {
		role := "user"
		var blocks []any
		switch m.Role {
		case "system", "developer":
			if text := m.Content.Text(); !isBlank(text) {
				system = append(system, textBlock(text))
			}
			continue
		case "assistant":
			role, blocks = m.Role, toTurn(m)
		case "tool":
			result := map[string]any{"type": "tool_result", "tool_use_id": chat.CallID(m.ToolCallID)}
			if blocks, err = toBlocks(m.Content); len(blocks) > 0 {
				result["content"] = blocks
			}
			blocks = []any{result}
		default:
			blocks, err = toBlocks(m.Content)
		}
		if err != nil {
			return nil, nil, err
		}
		turns = addTurn(turns, role, blocks)
	}
	return system, turns, nil
}

// addTurn appends blocks to the last turn if it has the same role, otherwise as a turn.
func addTurn(turns []any, role string, blocks []any) []any {
	if len(blocks) == 0 {
		return turns
	}
	if len(turns) > 0 {
		if last := turns[len(turns)-1].(map[string]any); last["role"] == role {
			last["content"] = append(last["content"].([]any), blocks...)
			return turns
		}
	}
	return append(turns, map[string]any{"role": role, "content": blocks})
}

// isBlank reports whether a text has only white space, which the protocol does not allow.
func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

// toTurn converts a turn of the model.
func toTurn(m chat.Message) []any {
	var blocks []any
	for _, item := range m.Items(Name) {
		switch {
		case item.Call != nil:
			blocks = append(blocks, map[string]any{"type": "tool_use", "id": chat.CallID(item.Call.ID), "name": item.Call.Name, "input": item.Call.ObjectOf()})
		case item.Own != nil:
			blocks = append(blocks, item.Own)
		case !isBlank(item.Text):
			blocks = append(blocks, textBlock(item.Text))
		}
	}
	return blocks
}

// toBlocks converts texts, images and files.
func toBlocks(content chat.Content) ([]any, error) {
	var blocks []any
	for _, part := range content {
		switch {
		case part.Image != "":
			source := map[string]any{"type": "url", "url": part.Image}
			if mediaType, data, ok := chat.SplitData(part.Image); ok {
				source = map[string]any{"type": "base64", "media_type": mediaType, "data": data}
			}
			blocks = append(blocks, map[string]any{"type": "image", "source": source})
		case part.File != "":
			document, err := toDocument(part)
			if err != nil {
				return nil, err
			}
			blocks = append(blocks, document)
		case !isBlank(part.Text):
			blocks = append(blocks, textBlock(part.Text))
		}
	}
	return blocks, nil
}

// toDocument converts a file: a PDF, or a text.
func toDocument(part chat.Part) (any, error) {
	source := map[string]any{"type": "url", "url": part.File}
	mediaType, data, ok := chat.SplitData(part.File)
	switch {
	case ok && mediaType == "application/pdf":
		source = map[string]any{"type": "base64", "media_type": mediaType, "data": data}
	case ok && strings.HasPrefix(mediaType, "text/"):
		text, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			return nil, tea.Errorf(tea.ValidationError, "the file %s is not valid Base64: %w", part.Name, err)
		}
		source = map[string]any{"type": "text", "media_type": "text/plain", "data": string(text)}
	case ok:
		return nil, tea.Errorf(tea.ValidationError, "anthropic accepts files of the types application/pdf and text/*, not %s", mediaType)
	}
	document := map[string]any{"type": "document", "source": source}
	if part.Name != "" {
		document["title"] = part.Name
	}
	return document, nil
}

func toTools(tools []chat.Tool) []any {
	out := make([]any, len(tools))
	for i, t := range tools {
		out[i] = map[string]any{"name": t.Name, "description": t.Description, "input_schema": t.Parameters}
	}
	return out
}

func toChoice(choice string) any {
	switch choice {
	case "auto", "none":
		return map[string]any{"type": choice}
	case "required":
		return map[string]any{"type": "any"}
	}
	return map[string]any{"type": "tool", "name": choice}
}

// withoutImpossibleThinking removes a budget for thinking if the last turn of the model
// calls tools and has no thinking, as after a fallback in the middle of a conversation: the
// server would refuse the request.
func withoutImpossibleThinking(body map[string]any) {
	thinking, _ := body["thinking"].(map[string]any)
	turns, _ := body["messages"].([]any)
	if thinking["type"] != "enabled" {
		return
	}
	for i := len(turns) - 1; i >= 0; i-- {
		turn, _ := turns[i].(map[string]any)
		if turn["role"] != "assistant" {
			continue
		}
		called := false
		for _, block := range turn["content"].([]any) {
			kind := block.(map[string]any)["type"]
			if kind == "thinking" || kind == "redacted_thinking" {
				return
			}
			called = called || kind == "tool_use"
		}
		if called {
			delete(body, "thinking")
		}
		return
	}
}

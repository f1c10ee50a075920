package trace

import "strings"

// operationName is the attribute that marks a model call.
const operationName = "gen_ai.operation.name"

// ModelOperation returns the operation of an action that calls a model, in OpenTelemetry's
// terms: chat or embeddings. It is "" for other actions.
func ModelOperation(action string) string {
	switch {
	case strings.HasPrefix(action, "llm."):
		return "chat"
	case strings.HasPrefix(action, "embedding."):
		return "embeddings"
	}
	return ""
}

// ask adds the attributes of OpenTelemetry's conventions for a model call.
func (s *span) ask(action string, object map[string]any) {
	operation := ModelOperation(action)
	if operation == "" {
		return
	}
	s.set(operationName, operation)
	s.kind = kindClient
	s.set("gen_ai.request.model", object["model"])
	s.set("gen_ai.provider.name", object["provider"])
	for _, name := range []string{"temperature", "top_p", "max_tokens", "seed"} {
		s.set("gen_ai.request."+name, object[name])
	}
}

// answer adds the model usage in a result or in the event of a node's end. Without usage,
// the result is not a model's.
func (s *span) answer(result map[string]any) {
	usage, ok := result["usage"].(map[string]any)
	if !ok {
		return
	}
	s.kind = kindClient
	if _, known := s.attributes[operationName]; !known {
		s.set(operationName, "chat")
	}
	s.set("gen_ai.usage.input_tokens", usage["input_tokens"])
	s.set("gen_ai.usage.output_tokens", usage["output_tokens"])
	if model := text(result, "model"); model != "" {
		s.set("gen_ai.response.model", model)
		if _, asked := s.attributes["gen_ai.request.model"]; !asked {
			s.set("gen_ai.request.model", model)
		}
	}
	s.set("gen_ai.provider.name", result["provider"])
	if reason := text(result, "finish_reason"); reason != "" {
		s.set("gen_ai.response.finish_reasons", []any{reason})
	}
	s.set("tea.cost_usd", result["cost_usd"])
}

// messages returns one text message in the format of the conventions.
func messages(role, said string) string {
	return content([]any{map[string]any{"role": role, "parts": []any{map[string]any{"type": "text", "content": said}}}})
}

package trace

import "strings"

// operationName is the attribute that marks the call of a model.
const operationName = "gen_ai.operation.name"

// isModel reports whether an action is the call of a model.
func isModel(action string) bool {
	return strings.HasPrefix(action, "llm.") || strings.HasPrefix(action, "embedding.")
}

// ask adds what OpenTelemetry's conventions say about a call of a model.
func (s *span) ask(action string, object map[string]any) {
	switch {
	case strings.HasPrefix(action, "llm."):
		s.set(operationName, "chat")
	case strings.HasPrefix(action, "embedding."):
		s.set(operationName, "embeddings")
	default:
		return
	}
	s.kind = kindClient
	s.set("gen_ai.request.model", object["model"])
	s.set("gen_ai.provider.name", object["provider"])
	for _, name := range []string{"temperature", "top_p", "max_tokens", "seed"} {
		s.set("gen_ai.request."+name, object[name])
	}
}

// answer adds what a result, or the event of a node's end, says about the use
// of a model. One without usage is not a model's.
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

// messages is one text message in the conventions' form.
func messages(role, said string) string {
	return content([]any{map[string]any{"role": role, "parts": []any{map[string]any{"type": "text", "content": said}}}})
}

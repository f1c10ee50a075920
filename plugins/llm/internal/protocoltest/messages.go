package protocoltest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// messages is Anthropic's Messages API.
type messages struct{}

func (messages) key(r *http.Request) string { return r.Header.Get("X-Api-Key") }

func (messages) streams(_ *http.Request, body object) bool { return body["stream"] == true }

func (messages) failure(status int, code, message string) any {
	if code == "" {
		code = map[int]string{400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error"}[status]
	}
	return object{"type": "error", "error": object{"type": code, "message": message}, "request_id": "req_1"}
}

func (messages) read(s *Server, r *http.Request, body object) (talk []string, err error) {
	switch {
	case r.URL.Path != "/v1/messages":
		return nil, fmt.Errorf("no path %s", r.URL.Path)
	case r.Header.Get("Anthropic-Version") != "2023-06-01":
		return nil, fmt.Errorf("anthropic-version: header is required")
	}
	for name := range body {
		switch name {
		case "model", "messages", "max_tokens", "system", "temperature", "top_p", "stop_sequences", "tools", "tool_choice", "output_config", "stream", "thinking":
		default:
			return nil, fmt.Errorf("%s: Extra inputs are not permitted", name)
		}
	}
	if n, _ := body["max_tokens"].(float64); n < 1 {
		return nil, fmt.Errorf("max_tokens: Field required")
	}
	for _, block := range list(body["system"]) {
		talk = append(talk, "system: "+text(block["text"]))
	}
	open := map[string]bool{} // the calls of the last turn, which need results
	role := "assistant"
	for i, m := range list(body["messages"]) {
		if m["role"] == role || m["role"] != "user" && m["role"] != "assistant" {
			return nil, fmt.Errorf("messages.%d: roles must alternate", i)
		}
		role = text(m["role"])
		blocks := list(m["content"])
		if len(blocks) == 0 {
			return nil, fmt.Errorf("messages.%d: content is empty", i)
		}
		signature := ""
		for _, b := range blocks {
			if len(open) > 0 && b["type"] != "tool_result" {
				return nil, fmt.Errorf("messages.%d: tool_use ids were found without tool_result blocks immediately after", i)
			}
			line, err := messages{}.block(s, b, &signature, open, role)
			if err != nil {
				return nil, fmt.Errorf("messages.%d: %w", i, err)
			}
			talk = append(talk, line)
		}
		if role == "assistant" {
			for _, b := range blocks {
				if b["type"] == "tool_use" {
					open[text(b["id"])] = true
				}
			}
		}
	}
	if role == "assistant" {
		return nil, fmt.Errorf("the conversation must end with a user message")
	}
	return talk, nil
}

// block checks a block of a turn. signature is that of the thinking before it.
func (messages) block(s *Server, b object, signature *string, open map[string]bool, role string) (string, error) {
	source, _ := b["source"].(object)
	switch b["type"] {
	case "text":
		if text(b["text"]) == "" {
			return "", fmt.Errorf("text content blocks must be non-empty")
		}
		if role == "user" {
			return "user: " + text(b["text"]), nil
		}
		return "model: " + text(b["text"]), nil
	case "thinking":
		*signature = text(b["signature"])
		return "think: " + text(b["thinking"]), s.check(*signature, text(b["thinking"]))
	case "tool_use":
		if want := s.owed[text(b["id"])]; want != *signature {
			return "", fmt.Errorf("expected thinking before tool_use %s", b["id"])
		}
		if _, ok := b["input"].(object); !ok {
			return "", fmt.Errorf("tool_use.input: Input should be a valid dictionary")
		}
		return "call: " + text(b["name"]) + " " + compact(b["input"]), nil
	case "tool_result":
		if !open[text(b["tool_use_id"])] {
			return "", fmt.Errorf("unexpected tool_use_id %v", b["tool_use_id"])
		}
		delete(open, text(b["tool_use_id"]))
		content := ""
		for _, part := range list(b["content"]) {
			content += text(part["text"])
		}
		return "result: " + content, nil
	case "image":
		return "image: " + text(source["media_type"]), nil
	case "document":
		return "file: " + text(source["media_type"]) + " " + text(b["title"]), nil
	}
	return "", fmt.Errorf("unknown block %v", b["type"])
}

func (p messages) write(w *writer, step Step, stream bool) {
	var blocks []object
	if step.Reasoning != "" {
		blocks = append(blocks, object{"type": "thinking", "thinking": step.Reasoning, "signature": w.server.sign(w.turn, step)})
	}
	if step.Text != "" {
		blocks = append(blocks, object{"type": "text", "text": step.Text})
	}
	stop := "end_turn"
	for _, c := range step.Calls {
		blocks = append(blocks, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": json.RawMessage(c.Arguments)})
		stop = "tool_use"
	}
	usage := object{
		"input_tokens": 10, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 60, "output_tokens": 5,
		"cache_creation": object{"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 10},
	}
	message := object{"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test", "content": blocks, "stop_reason": stop, "stop_sequence": nil, "usage": usage}
	if !stream {
		w.json(message)
		return
	}
	message["content"], message["stop_reason"] = []any{}, nil
	w.event("message_start", object{"type": "message_start", "message": message})
	w.event("ping", object{"type": "ping"})
	for i, b := range blocks {
		start, deltas := p.stream(b)
		w.event("content_block_start", object{"type": "content_block_start", "index": i, "content_block": start})
		for _, d := range deltas {
			w.event("content_block_delta", object{"type": "content_block_delta", "index": i, "delta": d})
		}
		if step.FailLate {
			w.event("error", p.failure(529, step.Code, "Overloaded"))
			return
		}
		w.event("content_block_stop", object{"type": "content_block_stop", "index": i})
	}
	w.event("message_delta", object{"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": 5}})
	w.event("message_stop", object{"type": "message_stop"})
}

// stream returns the beginning of a block and its pieces.
func (messages) stream(b object) (start object, deltas []object) {
	switch b["type"] {
	case "thinking":
		for _, half := range halves(text(b["thinking"])) {
			deltas = append(deltas, object{"type": "thinking_delta", "thinking": half})
		}
		return object{"type": "thinking", "thinking": "", "signature": ""}, append(deltas, object{"type": "signature_delta", "signature": b["signature"]})
	case "text":
		for _, half := range halves(text(b["text"])) {
			deltas = append(deltas, object{"type": "text_delta", "text": half})
		}
		return object{"type": "text", "text": ""}, deltas
	}
	for _, half := range halves(string(b["input"].(json.RawMessage))) {
		deltas = append(deltas, object{"type": "input_json_delta", "partial_json": half})
	}
	return object{"type": "tool_use", "id": b["id"], "name": b["name"], "input": object{}}, deltas
}

package protocoltest

import (
	"fmt"
	"net/http"
	"strings"
)

// completions is OpenAI's chat completions API.
type completions struct{}

func (completions) key(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

func (completions) streams(_ *http.Request, body object) bool { return body["stream"] == true }

func (completions) failure(_ int, code, message string) any {
	return object{"error": object{"message": message, "type": "invalid_request_error", "code": code}}
}

func (completions) read(_ *Server, r *http.Request, body object) (talk []string, err error) {
	if r.URL.Path != "/v1/chat/completions" {
		return nil, fmt.Errorf("no path %s", r.URL.Path)
	}
	for i, m := range list(body["messages"]) {
		for name := range m {
			switch name {
			case "role", "content", "name", "tool_calls", "tool_call_id":
			default:
				return nil, fmt.Errorf("messages.%d: unknown parameter %s", i, name)
			}
		}
		role := map[string]string{"system": "system: ", "developer": "system: ", "user": "user: ", "assistant": "model: ", "tool": "result: "}[text(m["role"])]
		if content := text(m["content"]); content != "" {
			talk = append(talk, role+content)
		}
		for _, part := range list(m["content"]) {
			switch part["type"] {
			case "text":
				talk = append(talk, role+text(part["text"]))
			case "image_url":
				url, _, _ := strings.Cut(strings.TrimPrefix(text(part["image_url"].(object)["url"]), "data:"), ";")
				talk = append(talk, "image: "+url)
			case "file":
				file, _ := part["file"].(object)
				kind, _, _ := strings.Cut(strings.TrimPrefix(text(file["file_data"]), "data:"), ";")
				talk = append(talk, "file: "+kind+" "+text(file["filename"]))
			}
		}
		for _, c := range list(m["tool_calls"]) {
			f, _ := c["function"].(object)
			talk = append(talk, "call: "+text(f["name"])+" "+text(f["arguments"]))
		}
	}
	return talk, nil
}

func (completions) write(w *writer, step Step, stream bool) {
	message := object{"role": "assistant", "content": step.Text}
	var calls []object
	finish := "stop"
	for i, c := range step.Calls {
		calls = append(calls, object{"index": i, "id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.Arguments}})
		finish = "tool_calls"
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	usage := object{"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105, "prompt_tokens_details": object{"cached_tokens": 60}}
	member := "message"
	if stream {
		member = "delta"
	}
	answer := object{"id": "c1", "object": "chat.completion", "model": "gpt-test", "choices": []object{{"index": 0, member: message, "finish_reason": finish}}, "usage": usage}
	if !stream {
		w.json(answer)
		return
	}
	w.event("", answer)
	w.event("", object{"choices": []object{}})
}

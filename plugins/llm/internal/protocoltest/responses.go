package protocoltest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// responses is OpenAI's Responses API.
type responses struct{}

func (responses) key(r *http.Request) string { return completions{}.key(r) }

func (responses) streams(_ *http.Request, body object) bool { return body["stream"] == true }

func (responses) failure(status int, code, message string) any {
	return completions{}.failure(status, code, message)
}

func (responses) read(s *Server, r *http.Request, body object) (talk []string, err error) {
	if r.URL.Path != "/v1/responses" {
		return nil, fmt.Errorf("no path %s", r.URL.Path)
	}
	for name := range body {
		switch name {
		case "model", "input", "store", "include", "temperature", "top_p", "max_output_tokens", "text", "tools", "tool_choice", "stream", "reasoning":
		default:
			return nil, fmt.Errorf("unknown parameter: '%s'", name)
		}
	}
	if body["store"] != false || compact(body["include"]) != `["reasoning.encrypted_content"]` {
		return nil, errors.New("items are not persisted when store is set to false")
	}
	open := map[string]bool{}
	signature := ""
	for i, item := range list(body["input"]) {
		lines, err := responses{}.item(s, item, &signature, open)
		if err != nil {
			return nil, fmt.Errorf("input[%d]: %w", i, err)
		}
		talk = append(talk, lines...)
	}
	for id := range open {
		return nil, fmt.Errorf("no tool output found for function call %s", id)
	}
	return talk, nil
}

// item checks an item of the conversation. signature is the last encrypted reasoning of the
// turn.
func (responses) item(s *Server, item object, signature *string, open map[string]bool) ([]string, error) {
	switch item["type"] {
	case "reasoning":
		*signature = text(item["encrypted_content"])
		summary := ""
		for _, p := range list(item["summary"]) {
			summary += text(p["text"])
		}
		return []string{"think: " + summary}, s.check(*signature, summary)
	case "function_call":
		id := text(item["call_id"])
		if len(id) > 64 {
			return nil, errors.New("call_id: string too long")
		}
		if want := s.owed[id]; want != *signature {
			return nil, fmt.Errorf("function_call %s was provided without its required 'reasoning' item", id)
		}
		open[id] = true
		return []string{"call: " + text(item["name"]) + " " + text(item["arguments"])}, nil
	case "function_call_output":
		if !open[text(item["call_id"])] {
			return nil, fmt.Errorf("no tool call found for function call output with call_id %v", item["call_id"])
		}
		delete(open, text(item["call_id"]))
		*signature = ""
		return []string{"result: " + text(item["output"])}, nil
	}
	role := map[string]string{"system": "system: ", "developer": "system: ", "user": "user: ", "assistant": "model: "}[text(item["role"])]
	if role == "" {
		return nil, fmt.Errorf("invalid item %s", compact(item))
	}
	if role == "model: " && item["phase"] != "final_answer" && *signature != "" {
		return nil, errors.New("the phase of the message is missing")
	}
	if content := text(item["content"]); content != "" {
		return []string{role + content}, nil
	}
	var lines []string
	for _, part := range list(item["content"]) {
		switch part["type"] {
		case "input_text":
			lines = append(lines, role+text(part["text"]))
		case "input_image":
			kind, _, _ := strings.Cut(strings.TrimPrefix(text(part["image_url"]), "data:"), ";")
			lines = append(lines, "image: "+kind)
		case "input_file":
			kind, _, _ := strings.Cut(strings.TrimPrefix(text(part["file_data"]), "data:"), ";")
			lines = append(lines, "file: "+kind+" "+text(part["filename"]))
		default:
			return nil, fmt.Errorf("invalid value %v", part["type"])
		}
	}
	return lines, nil
}

func (p responses) write(w *writer, step Step, stream bool) {
	var output []object
	if step.Reasoning != "" {
		output = append(output, object{"type": "reasoning", "id": "rs_1", "summary": []object{{"type": "summary_text", "text": step.Reasoning}}, "encrypted_content": w.server.sign(w.turn, step)})
	}
	if step.Text != "" {
		content := []object{{"type": "output_text", "text": step.Text, "annotations": []any{}}}
		output = append(output, object{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "final_answer", "content": content})
	}
	for _, c := range step.Calls {
		output = append(output, object{"type": "function_call", "id": "fc_1", "call_id": c.ID, "name": c.Name, "arguments": c.Arguments, "status": "completed"})
	}
	response := object{
		"id": "resp_1", "object": "response", "model": "gpt-test", "status": "completed", "error": nil, "incomplete_details": nil, "output": output,
		"usage": object{"input_tokens": 100, "input_tokens_details": object{"cached_tokens": 60}, "output_tokens": 5, "output_tokens_details": object{"reasoning_tokens": 2}, "total_tokens": 105},
	}
	if !stream {
		w.json(response)
		return
	}
	send := func(name string, members object) {
		members["type"] = name
		w.event(name, members)
	}
	send("response.created", object{"response": object{"object": "response", "status": "in_progress", "output": []any{}}})
	for i, item := range output {
		send("response.output_item.added", object{"output_index": i, "item": object{"type": item["type"]}})
		p.pieces(send, i, item)
		if step.FailLate {
			send("response.failed", object{"response": object{"object": "response", "status": "failed", "error": object{"code": step.Code, "message": "The server had an error"}}})
			return
		}
		send("response.output_item.done", object{"output_index": i, "item": item})
	}
	send("response.completed", object{"response": response})
}

// pieces sends an item in pieces.
func (responses) pieces(send func(string, object), i int, item object) {
	switch item["type"] {
	case "reasoning":
		send("response.reasoning_summary_part.added", object{"output_index": i, "summary_index": 0})
		for _, half := range halves(text(item["summary"].([]object)[0]["text"])) {
			send("response.reasoning_summary_text.delta", object{"output_index": i, "delta": half})
		}
	case "message":
		for _, half := range halves(text(item["content"].([]object)[0]["text"])) {
			send("response.output_text.delta", object{"output_index": i, "content_index": 0, "delta": half})
		}
	case "function_call":
		for _, half := range halves(text(item["arguments"])) {
			send("response.function_call_arguments.delta", object{"output_index": i, "delta": half})
		}
	}
}

package protocoltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// generate is Google's Gemini API.
type generate struct{}

func (generate) key(r *http.Request) string { return r.Header.Get("X-Goog-Api-Key") }

func (generate) streams(r *http.Request, _ object) bool {
	return strings.HasSuffix(r.URL.Path, ":streamGenerateContent")
}

func (generate) failure(status int, code, message string) any {
	if code == "" {
		code = map[int]string{400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}[status]
	}
	return object{"error": object{"code": status, "message": message, "status": code}}
}

func (g generate) read(s *Server, r *http.Request, body object) (talk []string, err error) {
	method := strings.TrimPrefix(r.URL.Path, "/v1beta/models/gemini-test")
	if method != ":generateContent" && (method != ":streamGenerateContent" || r.URL.RawQuery != "alt=sse") {
		return nil, fmt.Errorf("no path %s", r.URL)
	}
	for name := range body {
		switch name {
		case "contents", "systemInstruction", "generationConfig", "tools", "toolConfig":
		default:
			return nil, fmt.Errorf("unknown name %q", name)
		}
	}
	if system, ok := body["systemInstruction"].(object); ok {
		for _, part := range list(system["parts"]) {
			talk = append(talk, "system: "+text(part["text"]))
		}
	}
	calls := 0 // of the last turn of the model
	role := "model"
	for i, c := range list(body["contents"]) {
		if c["role"] == role || c["role"] != "user" && c["role"] != "model" {
			return nil, fmt.Errorf("contents[%d]: the roles must alternate", i)
		}
		role = text(c["role"])
		results, signature := 0, ""
		for j, part := range list(c["parts"]) {
			line, err := g.part(s, part, role, &signature)
			if err != nil {
				return nil, fmt.Errorf("contents[%d].parts[%d]: %w", i, j, err)
			}
			if part["functionResponse"] != nil {
				results++
			}
			talk = append(talk, line)
		}
		if results != calls {
			return nil, errors.New("the number of function response parts must be equal to the number of function call parts")
		}
		calls = 0
		for _, part := range list(c["parts"]) {
			if part["functionCall"] != nil {
				calls++
			}
		}
	}
	return talk, nil
}

// part checks a part of the conversation. signature is that of the first call of the turn.
func (generate) part(s *Server, part object, role string, signature *string) (string, error) {
	if call, ok := part["functionCall"].(object); ok {
		got := text(part["thoughtSignature"])
		if got == "" && *signature == "" {
			return "", fmt.Errorf("function call `%v` is missing a thought_signature", call["name"])
		}
		if got != "" {
			*signature = got
		}
		want := s.owed[text(call["id"])]
		if want == "" {
			want = "skip_thought_signature_validator"
		}
		if *signature != want {
			return "", fmt.Errorf("thought signature is not valid")
		}
		return "call: " + text(call["name"]) + " " + compact(call["args"]), nil
	}
	if result, ok := part["functionResponse"].(object); ok {
		if text(result["name"]) == "" {
			return "", errors.New("function_response.name: cannot be empty")
		}
		if _, ok := result["response"].(object); !ok {
			return "", errors.New("function_response.response: must be an object")
		}
		return "result: " + compact(result["response"]), nil
	}
	if data, ok := part["inlineData"].(object); ok {
		if kind := text(data["mimeType"]); !strings.HasPrefix(kind, "image/") {
			return "file: " + kind, nil
		}
		return "image: " + text(data["mimeType"]), nil
	}
	if part["thought"] == true {
		return "", errors.New("a thought without a signature")
	}
	if _, ok := part["text"].(string); !ok {
		return "", errors.New("required oneof field 'data' must have one initialized field")
	}
	if role == "model" {
		return "model: " + text(part["text"]), nil
	}
	return "user: " + text(part["text"]), nil
}

func (generate) write(w *writer, step Step, stream bool) {
	var parts []object
	signature := ""
	if step.Reasoning != "" {
		signature = w.server.sign(w.turn, step)
		for _, half := range halves(step.Reasoning) {
			parts = append(parts, object{"text": half, "thought": true})
		}
	}
	if step.Text != "" {
		for _, half := range halves(step.Text) {
			parts = append(parts, object{"text": half})
		}
	}
	for i, c := range step.Calls {
		part := object{"functionCall": object{"id": c.ID, "name": c.Name, "args": json.RawMessage(c.Arguments)}}
		if i == 0 && signature != "" {
			part["thoughtSignature"] = signature
		}
		parts = append(parts, part)
	}
	if len(step.Calls) == 0 && signature != "" {
		parts = append(parts, object{"text": "", "thoughtSignature": signature})
	}
	usage := object{"promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 3, "thoughtsTokenCount": 2, "totalTokenCount": 105}
	answer := func(parts []object, finish any) object {
		candidate := object{"content": object{"role": "model", "parts": parts}, "index": 0}
		if finish != nil {
			candidate["finishReason"] = finish
		}
		return object{"candidates": []object{candidate}, "usageMetadata": usage, "modelVersion": "gemini-test"}
	}
	if !stream {
		w.json(answer(parts, "STOP"))
		return
	}
	for i, part := range parts {
		if step.FailLate && i == 1 {
			w.event("", generate{}.failure(503, step.Code, "The model is overloaded"))
			return
		}
		if w.cut && i == 1 {
			panic(http.ErrAbortHandler)
		}
		w.event("", answer([]object{part}, nil))
	}
	w.event("", answer([]object{}, "STOP"))
}

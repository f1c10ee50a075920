package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const echo = `nodes: [{name: n, run: 'return {answer = "You said " .. state.prompt .. " in " .. #state.messages .. " messages"}'}]`

func TestChat(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"echo.yaml": echo, "fail.yaml": `nodes: [{name: n, run: 'error("no luck")'}]`}).serve()
	const want = "You said hello in 2 messages"
	body := func(model, more string) string {
		return `{"model": "` + model + `", "temperature": 1, "messages": [{"role": "system", "content": "x"}, {"role": "user", "content": [{"type": "text", "text": "hello"}]}]` + more + `}`
	}
	for _, one := range []string{
		`, "n": 1`, `, "n": 1.0`, `, "n": null`,
		`, "tools": [], "tool_choice": "auto", "response_format": {"type": "text"}, "logprobs": false, "modalities": ["text"], "stream_options": null`,
	} {
		if r := s.request("POST", "/v1/chat/completions", body("echo", one)); r.status != http.StatusOK {
			t.Errorf("%s: %s", one, r)
		}
	}
	r := s.request("POST", "/v1/chat/completions", body("echo", ""))
	choice := r.body["choices"].([]any)[0].(map[string]any)
	if message := choice["message"].(map[string]any); message["content"] != want || message["role"] != "assistant" || choice["finish_reason"] != "stop" {
		t.Errorf("answer: %s", r)
	}
	for _, c := range []struct {
		body   string
		status int
		want   string
	}{
		{body("gone", ""), 404, "there is no such workflow"},
		{body("fail", ""), 500, "no luck"},
		{body("", ""), 400, "model: expected the name of a workflow"},
		{`{"model": "echo", "messages": []}`, 400, "messages: expected a list"},
		{`[]`, 400, "expected an object"},
		{body("echo", `, "n": 2`), 400, "n: a workflow returns one answer"},
		{body("echo", `, "n": 0`), 400, "n: a workflow returns one answer"},
		{body("echo", `, "n": "2"`), 400, "n: a workflow returns one answer"},
		{body("echo", `, "tools": [{"type": "function"}]`), 400, "tools: a workflow calls its own tools"},
		{body("echo", `, "tool_choice": "required"`), 400, "tool_choice: a workflow calls its own tools"},
		{body("echo", `, "response_format": {"type": "json_object"}`), 400, "response_format: a workflow decides"},
		{body("echo", `, "logprobs": true`), 400, "logprobs: a workflow has no"},
		{body("echo", `, "modalities": ["text", "audio"]`), 400, "modalities: a workflow answers with text"},
		{body("echo", `, "stream_options": {"include_usage": true}`), 400, "stream_options: only allowed with stream: true"},
		{body("echo", `, "stream": true, "stream_options": true`), 400, "stream_options: expected an object"},
		{body("echo", `, "stream": true, "stream_options": {"include_usage": 1}`), 400, "stream_options.include_usage: expected true or false"},
	} {
		r := s.request("POST", "/v1/chat/completions", c.body)
		failure, _ := r.body["error"].(map[string]any) // as clients of OpenAI expect it
		message, _ := failure["message"].(string)
		if r.status != c.status || !strings.Contains(message, c.want) || failure["type"] == nil {
			t.Errorf("%s: %s, want %d %s", c.body, r, c.status, c.want)
		}
	}
	res, err := http.Post(s.url+"/v1/chat/completions", "application/json", strings.NewReader(body("echo", `, "stream": true`)))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, last, finish := "", "", any(nil)
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if last = data; data == "[DONE]" {
			break
		}
		var chunk struct {
			Choices []struct {
				Delta  struct{ Content string }
				Finish any `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			t.Fatal(err)
		}
		text += chunk.Choices[0].Delta.Content
		finish = chunk.Choices[0].Finish
	}
	if text != want || last != "[DONE]" || finish != "stop" || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("stream: %q, %q, %v, %v", text, last, finish, res.Header)
	}
	var models []string
	for _, m := range s.request("GET", "/v1/models", "").body["data"].([]any) {
		models = append(models, m.(map[string]any)["id"].(string))
	}
	if diff := cmp.Diff([]string{"echo", "fail"}, models); diff != "" {
		t.Errorf("models (-want +got):\n%s", diff)
	}
	if r := s.request("GET", "/v1/models/echo", ""); r.body["id"] != "echo" {
		t.Errorf("model: %s", r)
	}
	if r := s.request("GET", "/v1/models/gone", ""); r.status != http.StatusNotFound || r.body["error"] == nil {
		t.Errorf("no model: %s", r)
	}
}

// The usage is in a separate chunk, after the one that ends the answer.
func TestChatStreamWithUsage(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"echo.yaml": echo}).serve()
	r := s.request("POST", "/v1/chat/completions", `{"model": "echo", "stream": true, "stream_options": {"include_usage": true}, "messages": [{"role": "user", "content": "hello"}]}`)
	var got []string
	for _, line := range strings.Split(strings.TrimSpace(r.text), "\n\n") {
		var chunk struct {
			Choices []struct {
				Finish any `json:"finish_reason"`
			}
			Usage json.RawMessage
		}
		data := strings.TrimPrefix(line, "data: ")
		if json.Unmarshal([]byte(data), &chunk) != nil {
			got = append(got, data)
			continue
		}
		got = append(got, fmt.Sprintf("%v %s", chunk.Choices, chunk.Usage))
	}
	want := []string{"[{<nil>}] null", "[{stop}] null", `[] {"completion_tokens":0,"prompt_tokens":0,"total_tokens":0}`, "[DONE]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("chunks (-want +got):\n%s\n%s", diff, r)
	}
}

func TestChatStreamOfAFailedRunEndsWithAnError(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"fail.yaml": `nodes: [{name: n, run: 'error("no luck")'}]`}).serve()
	r := s.request("POST", "/v1/chat/completions", `{"model": "fail", "stream": true, "messages": [{"role": "user", "content": "hello"}]}`)
	chunks := strings.Split(strings.TrimSpace(r.text), "\n\n")
	if len(chunks) != 2 || chunks[1] != "data: [DONE]" || strings.Contains(r.text, "choices") {
		t.Fatalf("stream: %s", r)
	}
	var chunk struct {
		Error struct{ Message, Type string }
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(chunks[0], "data: ")), &chunk); err != nil || !strings.Contains(chunk.Error.Message, "no luck") || chunk.Error.Type != "server_error" {
		t.Errorf("error: %s, %v", chunks[0], err)
	}
}

func TestChatAnswersWithAValue(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{
		"list.yaml":  `nodes: [{name: n, run: 'return {answer = {a = 1}, other = 2}'}]`,
		"state.yaml": `nodes: [{name: n, run: 'return {count = 3}'}]`,
	}).serve()
	for model, want := range map[string]string{"list": `{"a":1}`, "state": `{"count":3}`} {
		r := s.request("POST", "/v1/chat/completions", `{"model": "`+model+`", "messages": [{"role": "user", "content": "hello"}]}`)
		choices, _ := r.body["choices"].([]any)
		if len(choices) != 1 || choices[0].(map[string]any)["message"].(map[string]any)["content"] != want {
			t.Errorf("%s: %s, want %s", model, r, want)
		}
	}
}

// Clients of OpenAI repeat requests after a status of 500, unless the header says no.
func TestChatWithAWrongStreamIsRefused(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"greet.yaml": greet}).serve()
	r := s.request("POST", "/v1/chat/completions", `{"model": "greet", "messages": [{"role": "user", "content": "Hi"}], "stream": "yes"}`)
	if r.status != http.StatusBadRequest || !strings.Contains(r.text, "stream: expected true or false") {
		t.Errorf("chat: %s", r)
	}
}

func TestChatThatHasFailedIsNotRepeated(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"fail.yaml": "nodes: [{name: n, run: 'error(\"broken\")'}]\n"}).serve()
	r := s.request("POST", "/v1/chat/completions", `{"model": "fail", "messages": [{"role": "user", "content": "Hi"}]}`)
	if r.status != http.StatusInternalServerError || r.header.Get("X-Should-Retry") != "false" {
		t.Errorf("%s %v", r, r.header)
	}
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const agentOfTests = `
description: Greets people.
nodes:
  - {name: greet, run: 'return {answer = "Hello " .. (state.prompt or state.name), words = 2}'}
`

const askTwice = `
nodes:
  - {name: first, uses: human.ask, with: {question: "Which color?", choices: ["red", "blue"]}, output: {color: "{{ result.answer }}"}}
  - {name: second, uses: human.ask, with: {question: "How many?", schema: {type: integer}}, output: {count: "{{ result.answer }}"}}
  - {name: last, run: 'return {answer = state.count .. " " .. state.color}'}
`

// rpc calls a method of A2A and returns the result, or the error with its code.
func (s *service) rpc(agent, method, params string, header ...string) (result map[string]any, failure string) {
	s.t.Helper()
	r := s.request("POST", "/a2a/"+agent, `{"jsonrpc": "2.0", "id": "1", "method": "`+method+`", "params": `+params+`}`, header...)
	if r.status != http.StatusOK || r.body["id"] != "1" {
		return nil, r.String()
	}
	if e, ok := r.body["error"].(map[string]any); ok {
		return nil, fmt.Sprint(e["code"], " ", e["message"])
	}
	result, _ = r.body["result"].(map[string]any)
	return result, ""
}

// a2aMessage returns the parameters of a message with a text; more are further members.
func a2aMessage(id, text, more string) string {
	return `{"message": {"messageId": "` + id + `", "role": "ROLE_USER", "parts": [{"text": "` + text + `"}]` + more + `}}`
}

// sent sends a message and returns the task.
func (s *service) sent(agent, params string) map[string]any {
	s.t.Helper()
	result, failure := s.rpc(agent, "SendMessage", params)
	task, _ := result["task"].(map[string]any)
	if task == nil {
		s.t.Fatalf("SendMessage %s: %v %s\n%s", params, result, failure, s.log)
	}
	return task
}

// stateOfTask returns the state of a task and the text of its message.
func stateOfTask(task map[string]any) string {
	status := task["status"].(map[string]any)
	state := status["state"].(string)
	if m, ok := status["message"].(map[string]any); ok {
		return fmt.Sprint(state, ": ", m["parts"].([]any)[0].(map[string]any)["text"])
	}
	return state
}

// resultOfTask returns the text and the data of the artifact of a task.
func resultOfTask(task map[string]any) (text, data any) {
	artifacts, _ := task["artifacts"].([]any)
	if len(artifacts) != 1 {
		return nil, nil
	}
	parts := artifacts[0].(map[string]any)["parts"].([]any)
	return parts[0].(map[string]any)["text"], parts[1].(map[string]any)["data"]
}

func TestA2ATaskIsARun(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"greet.yaml": agentOfTests}).serve()
	task := s.sent("greet", a2aMessage("m1", "Ada", `, "contextId": "c1"`))
	id := task["id"].(string)
	text, data := resultOfTask(task)
	want := map[string]any{"answer": "Hello Ada", "words": 2.0, "prompt": "Ada", "messages": []any{map[string]any{"role": "user", "content": "Ada"}}, "context_id": "c1"}
	if diff := cmp.Diff(want, data); diff != "" || text != "Hello Ada" || stateOfTask(task) != "TASK_STATE_COMPLETED" || task["contextId"] != "c1" {
		t.Errorf("task %v, state (-want +got):\n%s", task, diff)
	}
	if run := s.request("GET", "/v1/runs/"+id, "").body; run["workflow"] != "greet" || run["status"] != "done" || run["trigger"] != "a2a" {
		t.Errorf("run: %v", run)
	}
	got, failure := s.rpc("greet", "GetTask", `{"id": "`+id+`"}`)
	if text, _ := resultOfTask(got); text != "Hello Ada" || got["contextId"] != "c1" || failure != "" {
		t.Errorf("GetTask: %v %s", got, failure)
	}
	task = s.sent("greet", `{"message": {"messageId": "m2", "role": "ROLE_USER", "parts": [{"data": {"name": "Bob", "n": 9007199254740993, "list": [7.0, 0.5]}}]}}`)
	if text, _ := resultOfTask(task); text != "Hello Bob" || task["contextId"] == "" {
		t.Errorf("data: %v", task)
	}
	if r := s.request("GET", "/v1/runs/"+task["id"].(string)+"/state", ""); !strings.Contains(r.text, "9007199254740993") || !strings.Contains(r.text, "[7,0.5]") {
		t.Errorf("integers: %s", r)
	}
}

// The context id of a task that has not begun is masked like its input.
func TestA2AContextOfAQueuedTaskIsMasked(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": agentOfTests})
	gate := filepath.Join(p.home, "gate")
	p.write("block.yaml", block(gate))
	s := p.serve("--max-running", "1", "--secrets", `{"HOOK": "`+hookSecret+`"}`)
	s.started()
	id := s.sent("greet", `{"configuration": {"returnImmediately": true}, `+a2aMessage("m1", "Ada", `, "contextId": "`+hookSecret+`"`)[1:])["id"]
	if task, failure := s.rpc("greet", "GetTask", fmt.Sprintf(`{"id": %q}`, id)); failure != "" || stateOfTask(task) != "TASK_STATE_SUBMITTED" || task["contextId"] != "***" {
		t.Errorf("task: %v %s", task, failure)
	}
	open(t, gate)
}

// Conversations whose messages have the same ids have different contexts.
func TestA2AContextsOfDifferentTasksDiffer(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"greet.yaml": agentOfTests, "ask.yaml": ask}).serve()
	first, other, again := s.sent("greet", a2aMessage("1", "Ada", "")), s.sent("ask", a2aMessage("1", "Ada", "")), s.sent("greet", a2aMessage("1", "Ada", ""))
	_, data := resultOfTask(first)
	if id := first["contextId"]; id == "" || other["contextId"] == id || again["contextId"] != id || data.(map[string]any)["context_id"] != id {
		t.Errorf("contexts of a task, of another one and of the first message again: %v, %v, %v", first, other["contextId"], again["contextId"])
	}
}

func TestA2AQuestionIsInputRequired(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"ask.yaml": askTwice})
	s := p.serve()
	task := s.sent("ask", a2aMessage("m1", "go", ""))
	id, context := task["id"].(string), task["contextId"]
	if stateOfTask(task) != "TASK_STATE_INPUT_REQUIRED: Which color?" || context == "" {
		t.Fatalf("first: %v", task)
	}
	questions := task["status"].(map[string]any)["message"].(map[string]any)["parts"].([]any)[1].(map[string]any)["data"].(map[string]any)["questions"]
	if q := questions.([]any)[0].(map[string]any); !cmp.Equal(q["choices"], []any{"red", "blue"}) || q["id"] != "first:ask" {
		t.Errorf("questions: %v", questions)
	}
	of := fmt.Sprintf(`, "taskId": %q`, id)
	if _, failure := s.rpc("ask", "SendMessage", a2aMessage("m2", "green", of)); !strings.HasPrefix(failure, "-32602") || !strings.Contains(failure, "must be one of") {
		t.Errorf("a wrong answer: %s", failure)
	}
	task = s.sent("ask", a2aMessage("m3", "blue", of))
	if stateOfTask(task) != "TASK_STATE_INPUT_REQUIRED: How many?" || task["contextId"] != context {
		t.Fatalf("second: %v", task)
	}
	// The first answer, sent again, does not answer the second question, also after a restart.
	s.kill()
	s = p.serve()
	if task = s.sent("ask", a2aMessage("m3", "blue", of)); stateOfTask(task) != "TASK_STATE_INPUT_REQUIRED: How many?" {
		t.Errorf("the first answer again: %v", task)
	}
	if _, failure := s.rpc("ask", "SendMessage", a2aMessage("m3", "7", of)); !strings.HasPrefix(failure, "-32602") {
		t.Errorf("another message with the same id: %s", failure)
	}
	task = s.sent("ask", `{"message": {"messageId": "m4", "role": "ROLE_USER", "parts": [{"data": {"answers": {"second": 7}}}]`+of+`}}`)
	if text, _ := resultOfTask(task); text != "7 blue" || task["id"] != id {
		t.Errorf("last: %v", task)
	}
	if _, failure := s.rpc("ask", "SendMessage", a2aMessage("m5", "more", of)); !strings.HasPrefix(failure, "-32004") {
		t.Errorf("a message to a task that has ended: %s", failure)
	}
}

func TestA2ARepeatedMessageStartsNoSecondRun(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": agentOfTests})
	s := p.serve()
	var ids sync.Map
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { ids.Store(s.sent("greet", a2aMessage("m1", "Ada", ""))["id"], true) })
	}
	all.Wait()
	s.kill()
	s = p.serve()
	again := s.sent("greet", a2aMessage("m1", "Ada", ""))
	ids.Store(again["id"], true)
	if text, _ := resultOfTask(again); text != "Hello Ada" {
		t.Errorf("the task again: %v", again)
	}
	n := 0
	ids.Range(func(any, any) bool { n++; return true })
	if runs := s.request("GET", "/v1/runs", "").body["runs"].([]any); n != 1 || len(runs) != 1 {
		t.Errorf("%d tasks, runs %v", n, runs)
	}
	if _, failure := s.rpc("greet", "SendMessage", a2aMessage("m1", "Bob", "")); !strings.HasPrefix(failure, "-32602") || !strings.Contains(failure, "another input") {
		t.Errorf("another message with the id: %s", failure)
	}
}

func TestA2AFailureAndCancel(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"ask.yaml": askTwice, "fail.yaml": `nodes: [{name: n, run: 'error("no luck")'}]`}).serve()
	if got := stateOfTask(s.sent("fail", a2aMessage("m1", "go", ""))); !strings.HasPrefix(got, "TASK_STATE_FAILED: ") || !strings.Contains(got, "no luck") {
		t.Errorf("failure: %s", got)
	}
	id := s.sent("ask", a2aMessage("m1", "go", ""))["id"].(string)
	task, failure := s.rpc("ask", "CancelTask", `{"id": "`+id+`"}`)
	if failure != "" || stateOfTask(task) != "TASK_STATE_CANCELED" {
		t.Errorf("cancel: %v %s", task, failure)
	}
	for _, c := range []struct{ agent, method, params, want string }{
		{"ask", "CancelTask", `{"id": "` + id + `"}`, "-32002"},
		{"ask", "SubscribeToTask", `{"id": "` + id + `"}`, "-32004"},
		{"fail", "GetTask", `{"id": "` + id + `"}`, "-32001"}, // a task of another agent
		{"ask", "GetTask", `{"id": "gone"}`, "-32001"},
		{"ask", "SendMessage", a2aMessage("m9", "x", `, "taskId": "gone"`), "-32001"},
		{"ask", "SendMessage", a2aMessage("", "x", ""), "-32602"},
		{"ask", "SendMessage", `{"message": {"messageId": "m", "parts": []}}`, "-32602"},
		{"ask", "SendMessage", `{"message": {"messageId": "m", "parts": [{"url": "http://x"}]}}`, "-32005"},
		{"ask", "SendMessage", `{"message": {"messageId": "m", "parts": [{"data": 7}]}}`, "-32602"},
		{"ask", "SendMessage", `[]`, "-32602"},
		{"ask", "SendMessage", a2aMessage("m", "x", `, "contextId": "`+strings.Repeat("c", 256)+`"`), "-32602"},
		{"ask", "SendMessage", `{"message": {"messageId": "m", "parts": [` + strings.Repeat(`{"text": ""}, `, 1000) + `{"text": "x"}]}}`, "-32602"},
		{"ask", "ListTasks", `{}`, "-32601"},
		{"ask", "GetExtendedAgentCard", `{}`, "-32007"},
		{"ask", "CreateTaskPushNotificationConfig", `{}`, "-32003"},
		{"gone", "GetTask", `{"id": "x"}`, "404"},
	} {
		if _, failure := s.rpc(c.agent, c.method, c.params); !strings.HasPrefix(failure, c.want) {
			t.Errorf("%s %s: %q, want %s", c.method, c.params, failure, c.want)
		}
	}
	if _, failure := s.rpc("ask", "GetTask", `{}`, "A2A-Version", "2.0"); !strings.HasPrefix(failure, "-32009") {
		t.Errorf("version 2.0: %s", failure)
	}
	for body, code := range map[string]float64{"{": -32700, `{"jsonrpc": "2.0", "id": "` + strings.Repeat("i", 256) + `", "method": "GetTask"}`: -32600, "[]": -32600, `{"id": 1, "method": "GetTask"}`: -32600} {
		if r := s.request("POST", "/a2a/ask", body); r.status != 200 || r.body["error"].(map[string]any)["code"] != code {
			t.Errorf("%s: %s", body, r)
		}
	}
}

// streamed returns the results of a method that streams.
func (s *service) streamed(agent, method, params string) (list []map[string]any) {
	s.t.Helper()
	r := s.request("POST", "/a2a/"+agent, `{"jsonrpc": "2.0", "id": 1, "method": "`+method+`", "params": `+params+`}`)
	for frame := range strings.SplitSeq(strings.TrimSpace(r.text), "\n\n") {
		var e struct{ Result map[string]any }
		if err := json.Unmarshal([]byte(strings.TrimPrefix(frame, "data: ")), &e); err != nil || e.Result == nil {
			s.t.Fatalf("%s: %v\n%s", frame, err, r)
		}
		list = append(list, e.Result)
	}
	return list
}

func TestA2AStream(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"ask.yaml": askTwice}).serve()
	kinds := func(list []map[string]any) (names []string) {
		for _, e := range list {
			for kind, doc := range e {
				if status, ok := doc.(map[string]any)["status"]; ok {
					kind += " " + stateOfTask(map[string]any{"status": status})
				}
				names = append(names, kind)
			}
		}
		return names
	}
	list := s.streamed("ask", "SendStreamingMessage", a2aMessage("m1", "go", ""))
	got := kinds(list)
	if len(got) != 3 || !strings.HasPrefix(got[0], "task ") || got[1] != "statusUpdate TASK_STATE_WORKING" || got[2] != "statusUpdate TASK_STATE_INPUT_REQUIRED: Which color?" {
		t.Fatalf("stream: %v", got)
	}
	of := fmt.Sprintf(`, "taskId": %q`, list[0]["task"].(map[string]any)["id"])
	if got := kinds(s.streamed("ask", "SubscribeToTask", `{"id": `+of[len(`, "taskId": `):]+`}`)); !cmp.Equal(got, []string{"task TASK_STATE_INPUT_REQUIRED: Which color?"}) {
		t.Errorf("subscribe to a task that needs input: %v", got)
	}
	s.streamed("ask", "SendStreamingMessage", a2aMessage("m2", "red", of))
	list = s.streamed("ask", "SendStreamingMessage", a2aMessage("m3", "3", of))
	got = kinds(list)
	if n := len(got); n < 3 || got[n-2] != "artifactUpdate" || got[n-1] != "statusUpdate TASK_STATE_COMPLETED" {
		t.Fatalf("stream of an answer: %v", got)
	}
	update := list[len(list)-2]["artifactUpdate"].(map[string]any)
	if text, _ := resultOfTask(map[string]any{"artifacts": []any{update["artifact"]}}); text != "3 red" || update["append"] != false || update["lastChunk"] != true {
		t.Errorf("artifact: %v", update)
	}
	if got := kinds(s.streamed("ask", "SendStreamingMessage", a2aMessage("m3", "3", of))); !cmp.Equal(got, []string{"task TASK_STATE_COMPLETED"}) {
		t.Errorf("the last answer again: %v", got)
	}
}

// An answer after which the run cannot continue ends with the question and the reason.
func TestA2AAnswerAfterWhichTheRunCannotContinue(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"ask.yaml": ask})
	gate := filepath.Join(p.home, "gate")
	p.write("block.yaml", block(gate))
	s := p.serve("--max-running", "1")
	of := fmt.Sprintf(`, "taskId": %q`, s.sent("ask", a2aMessage("m1", "go", ""))["id"])
	data := filepath.Join(p.home, "tea", "runs", "data", "ask")
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(data, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.started()
	next, _ := s.follow("ask", "SendStreamingMessage", a2aMessage("m2", "yes", of))
	if got := stateOfTask(next()["task"].(map[string]any)); got != "TASK_STATE_SUBMITTED" {
		t.Errorf("the answered task: %s", got)
	}
	open(t, gate)
	update, _ := next()["statusUpdate"].(map[string]any)
	if end := next(); update == nil || end != nil {
		t.Fatalf("stream: %v, then %v", update, end)
	}
	for name, task := range map[string]map[string]any{"the stream": update, "SendMessage": s.sent("ask", a2aMessage("m3", "yes", of))} {
		if text := fmt.Sprint(task["status"]); stateOfTask(task) != "TASK_STATE_INPUT_REQUIRED: Go on?" || !strings.Contains(text, "text:make the data directory: ") {
			t.Errorf("%s: %v", name, task)
		}
	}
	if err := os.Remove(data); err != nil {
		t.Fatal(err)
	}
	if got := stateOfTask(s.sent("ask", a2aMessage("m4", "yes", of))); got != "TASK_STATE_COMPLETED" {
		t.Errorf("the answer when the run can continue: %s", got)
	}
}

// Version 0.3 has other names for methods, states and kinds.
func TestA2AVersion03(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"ask.yaml": ask}).serve()
	body := func(id, text, more string) string {
		return `{"message": {"kind": "message", "messageId": "` + id + `", "role": "user", "parts": [{"kind": "text", "text": "` + text + `"}]` + more + `}}`
	}
	task, failure := s.rpc("ask", "message/send", body("m1", "go", ""))
	if failure != "" || task["kind"] != "task" || stateOfTask(task) != "input-required: Go on?" {
		t.Fatalf("message/send: %v %s", task, failure)
	}
	id := task["id"].(string)
	list := s.streamed("ask", "message/stream", body("m2", "yes", `, "taskId": "`+id+`"`))
	last := list[len(list)-1]
	if list[0]["kind"] != "task" || last["kind"] != "status-update" || last["final"] != true || stateOfTask(last) != "completed" {
		t.Errorf("message/stream: %v", list)
	}
	task, _ = s.rpc("ask", "tasks/get", `{"id": "`+id+`"}`)
	part := task["artifacts"].([]any)[0].(map[string]any)["parts"].([]any)[1].(map[string]any)
	if part["kind"] != "data" || part["data"].(map[string]any)["m"] != 2.0 {
		t.Errorf("tasks/get: %v", task)
	}
	if _, failure := s.rpc("ask", "tasks/cancel", `{"id": "`+id+`"}`); !strings.HasPrefix(failure, "-32002") {
		t.Errorf("tasks/cancel: %s", failure)
	}
	if _, failure := s.rpc("ask", "tasks/resubscribe", `{"id": "`+id+`"}`); !strings.HasPrefix(failure, "-32004") {
		t.Errorf("tasks/resubscribe: %s", failure)
	}
}

func TestA2ACardAndRoles(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"ask.yaml": ask})
	p.write("tokens", "view v-0123456789abcdef\nanswer a-0123456789abcdef\nrun r-0123456789abcdef\n")
	s := p.serve("--token-file", p.dir+"/tokens", "--public-url", "https://agents.example/x/")
	if r := s.request("GET", "/.well-known/agent-card.json", ""); r.status != http.StatusUnauthorized {
		t.Errorf("without a token: %s", r)
	}
	s.token = "v-0123456789abcdef"
	card := s.request("GET", "/.well-known/agent-card.json", "").body
	if diff := cmp.Diff(s.request("GET", "/a2a/ask/.well-known/agent-card.json", "").body, card); diff != "" {
		t.Errorf("the only card (-own +well-known):\n%s", diff)
	}
	first := card["supportedInterfaces"].([]any)[0]
	if diff := cmp.Diff(map[string]any{"url": "https://agents.example/x/a2a/ask", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}, first); diff != "" || card["name"] != "ask" || card["securitySchemes"].(map[string]any)["token"] == nil {
		t.Errorf("card %v (-want +got):\n%s", card, diff)
	}
	if _, failure := s.rpc("ask", "SendMessage", a2aMessage("m1", "go", "")); !strings.HasPrefix(failure, "403") {
		t.Errorf("a message with the role view: %s", failure)
	}
	s.token = "a-0123456789abcdef"
	if _, failure := s.rpc("ask", "SendMessage", a2aMessage("m1", "go", "")); !strings.HasPrefix(failure, "403") {
		t.Errorf("a task with the role answer: %s", failure)
	}
	s.token = "r-0123456789abcdef"
	id := s.sent("ask", a2aMessage("m1", "go", ""))["id"].(string)
	s.token = "v-0123456789abcdef"
	if task, failure := s.rpc("ask", "GetTask", `{"id": "`+id+`"}`); stateOfTask(task) != "TASK_STATE_INPUT_REQUIRED: Go on?" {
		t.Errorf("GetTask: %v %s", task, failure)
	}
	s.token = "a-0123456789abcdef"
	if _, failure := s.rpc("ask", "CancelTask", `{"id": "`+id+`"}`); !strings.HasPrefix(failure, "403") {
		t.Errorf("cancel with the role answer: %s", failure)
	}
	if got := stateOfTask(s.sent("ask", a2aMessage("m2", "no", `, "taskId": "`+id+`"`))); got != "TASK_STATE_COMPLETED" {
		t.Errorf("an answer with the role answer: %s", got)
	}
}

func TestA2AWithSeveralWorkflows(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"ask.yaml": ask, "greet.yaml": agentOfTests}).serve()
	if r := s.request("GET", "/.well-known/agent-card.json", ""); r.status != http.StatusNotFound || !strings.Contains(r.text, "/a2a/NAME/.well-known/agent-card.json") {
		t.Errorf("card: %s", r)
	}
	card := s.request("GET", "/a2a/greet/.well-known/agent-card.json", "").body
	if card["description"] != "Greets people." || card["url"] != s.url+"/a2a/greet" {
		t.Errorf("card: %v", card)
	}
}

// follow calls a method that streams, and returns a function that returns the next result
// and one that closes the connection.
func (s *service) follow(agent, method, params string) (next func() map[string]any, closeIt func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/a2a/"+agent, strings.NewReader(`{"jsonrpc": "2.0", "id": 1, "method": "`+method+`", "params": `+params+`}`))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { cancel(); _ = res.Body.Close() })
	lines := bufio.NewScanner(res.Body)
	return func() map[string]any {
		s.t.Helper()
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var e struct{ Result map[string]any }
				if err := json.Unmarshal([]byte(data), &e); err != nil {
					s.t.Fatal(err)
				}
				return e.Result
			}
		}
		return nil
	}, cancel
}

func TestA2AStreamOfTokensAfterALostConnection(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	file := filepath.Join(p.home, "lines")
	p.write("lines.yaml", "nodes: [{name: n, uses: echo.lines, with: {file: '"+file+"'}}]\n")
	write := func(lines ...string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := p.serveAdmin()
	if r := s.install(pack(t, "1.0.0", false)); r.status != http.StatusOK {
		t.Fatal(r)
	}
	s.log.await(t, "workflow offered")
	write("1", "2")
	// chunks joins the parts of the artifact, as a client does, until it contains a text.
	chunks := func(next func() map[string]any, until string) {
		t.Helper()
		for text := ""; !strings.Contains(text, until); {
			e := next()
			if e == nil {
				t.Fatalf("the stream ended after %q\n%s", text, s.log)
			}
			update, ok := e["artifactUpdate"].(map[string]any)
			if !ok {
				continue
			}
			if update["append"] == false {
				text = ""
			}
			text += fmt.Sprint(update["artifact"].(map[string]any)["parts"].([]any)[0].(map[string]any)["text"])
			if !strings.HasPrefix(text, `{"line": 1,`) {
				t.Fatalf("the artifact begins with %q", text)
			}
		}
	}
	next, closeIt := s.follow("lines", "SendStreamingMessage", a2aMessage("m1", "go", ""))
	task := next()["task"].(map[string]any)
	chunks(next, `"line": 2,`)
	closeIt()
	next, _ = s.follow("lines", "SubscribeToTask", fmt.Sprintf(`{"id": %q}`, task["id"]))
	if got := stateOfTask(next()["task"].(map[string]any)); got != "TASK_STATE_WORKING" {
		t.Errorf("the task after the connection was lost: %s", got)
	}
	write("1", "2", "3")
	chunks(next, `"line": 3,`)
	write("1", "2", "3", "4")
	chunks2, _ := s.follow("lines", "SendStreamingMessage", a2aMessage("m1", "go", "")) // the message again
	if got := chunks2()["task"].(map[string]any)["id"]; got != task["id"] {
		t.Errorf("the task of the message again: %v", got)
	}
	chunks(chunks2, `"line": 4,`)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	var last map[string]any
	for e := next(); e != nil; e = next() {
		last = e
	}
	update, _ := last["statusUpdate"].(map[string]any)
	if update == nil || !strings.HasPrefix(stateOfTask(update), "TASK_STATE_FAILED: ") || !strings.Contains(stateOfTask(update), "no source") {
		t.Errorf("the last update: %v", last)
	}
	if task, _ := s.rpc("lines", "SendMessage", a2aMessage("m2", "go", "")); !strings.HasPrefix(stateOfTask(task["task"].(map[string]any)), "TASK_STATE_FAILED") {
		t.Errorf("a task without the file: %v", task)
	}
	write("1")
	now := s.sent("lines", `{"configuration": {"returnImmediately": true}, `+a2aMessage("m3", "go", "")[1:])
	if got := stateOfTask(now); got != "TASK_STATE_SUBMITTED" && got != "TASK_STATE_WORKING" {
		t.Errorf("without waiting: %s", got)
	}
	if task, failure := s.rpc("lines", "CancelTask", fmt.Sprintf(`{"id": %q}`, now["id"])); failure != "" || stateOfTask(task) != "TASK_STATE_CANCELED" {
		t.Errorf("cancel: %v %s", task, failure)
	}
}

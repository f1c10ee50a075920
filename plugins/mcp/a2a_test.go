package mcp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
)

// a2aAgent is an agent that records its requests and sends its replies in order.
type a2aAgent struct {
	url  string
	card string // URL is replaced by the agent's address

	mu       sync.Mutex
	replies  []string
	requests []string
}

func newAgent(t *testing.T, card string, replies ...string) *a2aAgent {
	t.Helper()
	a := &a2aAgent{card: card, replies: replies}
	s := httptest.NewServer(a)
	t.Cleanup(s.Close)
	a.url = s.URL
	return a
}

func (a *a2aAgent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer t0ken" || r.Header.Get("X-Team") != "edge" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/.well-known/agent-card.json" {
		_, _ = io.WriteString(w, strings.ReplaceAll(a.card, "URL", a.url))
		return
	}
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, fmt.Sprintf("%s %s %s", r.URL.Path, r.Header.Get("A2A-Version"), body))
	if len(a.replies) == 0 || a.replies[0] == "" {
		panic(http.ErrAbortHandler)
	}
	reply := a.replies[0]
	a.replies = a.replies[1:]
	_, _ = io.WriteString(w, reply)
}

// got returns the recorded requests.
func (a *a2aAgent) got() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.requests
}

// open returns a client with the agent a.
func (a *a2aAgent) open(t *testing.T) *client {
	t.Helper()
	return open(t, map[string]any{"a2a": map[string]any{"agents": map[string]any{
		"a": map[string]any{"url": a.url, "token": "t0ken", "headers": map[string]any{"X-Team": "edge"}},
	}}})
}

// send calls a2a.send.
func (c *client) send(t *testing.T, params map[string]any) (map[string]any, error) {
	t.Helper()
	params["agent"] = "a"
	resp, err := c.Invoke(t.Context(), &tea.Request{
		Action: "a2a.send", Params: tea.ValuePayload(params), Host: c.host, Call: tea.Call{Attempt: 1, IdempotencyKey: "key-1"},
	})
	if err != nil {
		return nil, err
	}
	var result map[string]any
	return result, resp.Result.Decode(&result)
}

const (
	cardNew = `{"name": "colors", "supportedInterfaces": [{"url": "URL/grpc", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
		{"url": "URL/old", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}, {"url": "URL/rpc?v=1", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}`
	cardOld = `{"name": "colors", "url": "URL/", "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"}`
)

func TestAgentIsAsked(t *testing.T) {
	t.Parallel()
	a := newAgent(t, cardNew,
		`{"result": {"task": {"id": "t1", "contextId": "c1", "status": {"state": "TASK_STATE_SUBMITTED"}}}}`,
		`{"result": {"id": "t1", "contextId": "c1", "status": {"state": "TASK_STATE_WORKING", "message": {"parts": [{"text": "half"}]}}}}`,
		`{"result": {"id": "t1", "contextId": "c1", "status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": [
			{"artifactId": "x", "parts": [{"text": "dark"}, {"data": {"n": 9007199254740993, "seven": 7.0}}]}, {"artifactId": "y", "parts": [{"text": "blue"}]}]}}`)
	c := a.open(t)
	got, err := c.send(t, map[string]any{"text": "go", "data": map[string]any{"n": 1}, "context_id": "c1"})
	if err != nil {
		t.Fatal(err)
	}
	if artifacts, _ := got["artifacts"].([]any); len(artifacts) != 2 {
		t.Errorf("artifacts: %v", got["artifacts"])
	}
	delete(got, "artifacts")
	want := map[string]any{
		"success": true, "state": "completed", "text": "dark\nblue", "data": map[string]any{"n": int64(9007199254740993), "seven": int64(7)}, "task_id": "t1", "context_id": "c1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	const get = `/rpc 1.0 {"id":1,"jsonrpc":"2.0","method":"GetTask","params":{"id":"t1"}}`
	requests := []string{
		`/rpc 1.0 {"id":1,"jsonrpc":"2.0","method":"SendMessage","params":{"configuration":{"returnImmediately":true},` +
			`"message":{"contextId":"c1","messageId":"key-1","parts":[{"text":"go"},{"data":{"n":1}}],"role":"ROLE_USER"}}}`, get, get,
	}
	if diff := cmp.Diff(requests, a.got()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if p := c.host.Recorded().Progress; len(p) != 1 || p[0].Message != "half" {
		t.Errorf("progress: %v", p)
	}
	if card := c.must(t, "a2a.card", map[string]any{"agent": "a"})["card"].(map[string]any); card["name"] != "colors" {
		t.Errorf("card: %v", card)
	}
}

func TestAgentOfTheOldVersionIsAsked(t *testing.T) {
	t.Parallel()
	a := newAgent(t, cardOld,
		`{"result": {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "input-required", "message": {"kind": "message", "parts": [{"kind": "text", "text": "Which?"}]}}}}`,
		`{"result": {"kind": "message", "contextId": "c1", "parts": [{"kind": "text", "text": "blue"}, {"kind": "data", "data": null}]}}`)
	c := a.open(t)
	got, err := c.send(t, map[string]any{"text": "go"})
	if err != nil || got["state"] != "input-required" || got["text"] != "Which?" || got["task_id"] != "t1" {
		t.Errorf("question: %v, %v", got, err)
	}
	got, err = c.send(t, map[string]any{"text": "blue", "task_id": "t1"})
	if err != nil || got["state"] != "completed" || got["text"] != "blue" || got["task_id"] != "" || got["data"] != nil {
		t.Errorf("message: %v, %v", got, err)
	}
	message := func(task, text string) string {
		return `/ 0.3 {"id":1,"jsonrpc":"2.0","method":"message/send","params":{"configuration":{"blocking":false},"message":{"kind":"message","messageId":"key-1",` +
			`"parts":[{"kind":"text","text":"` + text + `"}],"role":"user"` + task + `}}}`
	}
	if diff := cmp.Diff([]string{message("", "go"), message(`,"taskId":"t1"`, "blue")}, a.got()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestAgentFails(t *testing.T) {
	t.Parallel()
	const failed = `{"result": {"task": {"id": "t1", "status": {"state": "TASK_STATE_%s", "message": {"parts": [{"text": "no paint"}]}}}}}`
	for name, test := range map[string]struct {
		card, reply string
		kind        tea.ErrorType
		want        string
	}{
		"failed":            {cardNew, fmt.Sprintf(failed, "FAILED"), "agent_error", "agent a: the task t1 is failed: no paint"},
		"rejected":          {cardNew, fmt.Sprintf(failed, "REJECTED"), "agent_error", "is rejected: no paint"},
		"canceled":          {cardNew, `{"result": {"task": {"id": "t1", "status": {"state": "TASK_STATE_CANCELED"}}}}`, "agent_error", "is canceled: no reason was given"},
		"needs credentials": {cardNew, fmt.Sprintf(failed, "AUTH_REQUIRED"), tea.PermissionDenied, "is auth-required: no paint"},
		"unknown state":     {cardNew, fmt.Sprintf(failed, "DREAMING"), "agent_error", "is dreaming"},
		"unknown task":      {cardNew, `{"error": {"code": -32001, "message": "Task not found"}}`, tea.NotFound, "agent a: Task not found (error -32001 of SendMessage)"},
		"invalid":           {cardNew, `{"error": {"code": -32602, "message": "parts is missing"}}`, tea.ValidationError, "parts is missing"},
		"internal":          {cardNew, `{"error": {"code": -32603, "message": "boom"}}`, "agent_error", "boom"},
		"no task":           {cardNew, `{"result": {"ok": true}}`, tea.ConnectionError, "neither a task nor a message"},
		"no result":         {cardNew, `{}`, tea.ConnectionError, "cannot be read"},
		"a list":            {cardNew, `{"result": [1]}`, tea.ConnectionError, "cannot be read"},
		"another host":      {strings.ReplaceAll(cardOld, "URL", "http://internal:8080"), "", tea.PermissionDenied, "http://internal:8080/, another server than settings.a2a.agents.a.url"},
		"another scheme":    {`{"url": "ftp:x"}`, "", tea.PermissionDenied, "another server"},
		"another transport": {`{"url": "URL", "preferredTransport": "GRPC"}`, "", tea.DependencyMissing, "offers no JSON-RPC"},
		"a strange card":    {`{"supportedInterfaces": 1}`, "", tea.ConnectionError, "the card cannot be read"},
		"broken connection": {cardNew, "", tea.ConnectionError, "agent a: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t, test.card, test.reply)
			_, err := a.open(t).send(t, map[string]any{"text": "go"})
			refused(t, err, test.kind, test.want)
			if requests := a.got(); len(requests) > 1 {
				t.Errorf("the message was sent again: %v", requests)
			}
		})
	}
	a := newAgent(t, cardNew)
	c := a.open(t)
	_, err := c.send(t, map[string]any{})
	refused(t, err, tea.ValidationError, "text or data is required")
	_, err = c.call(t.Context(), "a2a.card", map[string]any{"agent": "b"})
	refused(t, err, tea.NotFound, `unknown agent "b"`, "settings.a2a.agents has a")
	stranger := open(t, map[string]any{"a2a": map[string]any{"agents": map[string]any{"a": map[string]any{"url": a.url, "token": "secret-of-mine"}}}})
	_, err = stranger.send(t, map[string]any{"text": "go"})
	refused(t, err, tea.PermissionDenied, "agent a: ", "401")
	if strings.Contains(err.Error(), "secret-of-mine") {
		t.Errorf("the error shows the token: %v", err)
	}
}

func TestAgentTakesTooLong(t *testing.T) {
	t.Parallel()
	const working = `{"result": {"task": {"id": "t1", "status": {"state": "TASK_STATE_WORKING"}}}}`
	a := newAgent(t, cardNew, slices.Repeat([]string{working}, 20)...)
	c := open(t, map[string]any{"a2a": map[string]any{"agents": map[string]any{
		"a": map[string]any{"url": a.url, "token": "t0ken", "headers": map[string]any{"X-Team": "edge"}, "timeout_seconds": json.Number("1")},
	}}})
	_, err := c.send(t, map[string]any{"text": "go"})
	refused(t, err, tea.Timeout, "agent a: the task t1 is working")
	if id := tea.AsError(err).Details["task_id"]; id != "t1" {
		t.Errorf("details: %v", tea.AsError(err).Details)
	}
}

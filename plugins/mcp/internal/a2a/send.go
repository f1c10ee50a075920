package a2a

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
	"github.com/the-edge-agent/tea/sdk/x/plaintext"
)

// SendParams are the parameters of a2a.send.
type SendParams struct {
	Agent     string         `json:"agent" doc:"name of the agent in settings.a2a.agents"`
	Text      string         `json:"text,omitempty" doc:"text of the message"`
	Data      map[string]any `json:"data,omitempty" doc:"an object in the message"`
	TaskID    string         `json:"task_id,omitempty" doc:"task to continue: the message answers its question"`
	ContextID string         `json:"context_id,omitempty" doc:"conversation to which a new task belongs"`
}

// Task is the result of a2a.send.
type Task struct {
	Success   bool   `json:"success" doc:"always true"`
	State     string `json:"state" doc:"completed, or input-required: the agent has a question"`
	Text      string `json:"text" doc:"the texts of the result or of the question"`
	Data      any    `json:"data" doc:"the first object of the result or of the question; null if there is none"`
	TaskID    string `json:"task_id" doc:"empty if the agent answered without a task"`
	ContextID string `json:"context_id"`
	Artifacts []any  `json:"artifacts" doc:"the complete artifacts of a task"`
}

// Send is the action a2a.send. It sends a message and waits until the task ends or asks a
// question. The idempotency key of the call is the id of the message, so an agent that
// recognizes repeated messages, such as tea serve, does not start a second task when the
// call is repeated.
func (a *Agents) Send(ctx context.Context, req *tea.Request, p SendParams) (*Task, error) {
	agent, err := a.agent(p.Agent)
	if err != nil {
		return nil, err
	}
	if p.Text == "" && p.Data == nil {
		return nil, tea.Errorf(tea.ValidationError, "text or data is required")
	}
	ctx, cancel := httpapi.Expire(ctx, agent.timeout)
	defer cancel()
	e, err := agent.connect(ctx)
	if err != nil {
		return nil, err
	}
	t, err := agent.call(ctx, e, e.send(), e.message(req.Call.IdempotencyKey, p))
	reported := ""
	for attempt := 1; err == nil && t.running(); attempt++ {
		if text := t.text(); text != "" && text != reported {
			req.Host.Progress(ctx, 0, plaintext.Cut(text, maxMessage))
			reported = text
		}
		if err := backoff.Sleep(ctx, polls.Wait(attempt)); err != nil {
			return nil, agent.unfinished(t, err)
		}
		next, failed := agent.call(ctx, e, e.get(), map[string]any{"id": t.ID})
		if failed == nil && next.ID != t.ID {
			failed = agent.errorf(tea.ConnectionError, "the answer to %s is not this task", e.get())
		}
		if err = failed; err != nil {
			err = agent.unfinished(t, failed)
		} else {
			t = next
		}
	}
	if err != nil {
		agent.endpoint.Store(nil) // the agent may have another address or version now
		return nil, err
	}
	return agent.result(t)
}

// unfinished adds the task to an error that ends the wait for it.
func (a *agent) unfinished(t *document, err error) *tea.Error {
	e := *tea.AsError(err)
	prefix := "agent " + a.name + ": "
	e.Message, e.Source = fmt.Sprintf("%sthe task %s is %s: %s", prefix, t.ID, t.state(), strings.TrimPrefix(e.Message, prefix)), a.name
	e.Details = maps.Clone(e.Details)
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details["task_id"], e.Details["state"] = t.ID, t.state()
	return &e
}

func (e *endpoint) send() string { return e.method("SendMessage", "message/send") }
func (e *endpoint) get() string  { return e.method("GetTask", "tasks/get") }

func (e *endpoint) method(current, old string) string {
	if e.old {
		return old
	}
	return current
}

// message returns the parameters for sending a message.
func (e *endpoint) message(id string, p SendParams) map[string]any {
	var parts []any
	add := func(kind string, v any) {
		part := map[string]any{kind: v}
		if e.old {
			part["kind"] = kind
		}
		parts = append(parts, part)
	}
	if p.Text != "" {
		add("text", p.Text)
	}
	if p.Data != nil {
		add("data", p.Data)
	}
	m := map[string]any{"messageId": id, "role": e.method("ROLE_USER", "user"), "parts": parts}
	if e.old {
		m["kind"] = "message"
	}
	if p.TaskID != "" {
		m["taskId"] = p.TaskID
	}
	if p.ContextID != "" {
		m["contextId"] = p.ContextID
	}
	return map[string]any{"message": m, "configuration": map[string]any{e.method("returnImmediately", "blocking"): !e.old}}
}

// document is a task, or the message with which an agent answers without a task.
type document struct {
	ID        string            `json:"id"`
	ContextID string            `json:"contextId"`
	Status    *status           `json:"status"` // nil in a message
	Artifacts []json.RawMessage `json:"artifacts"`
	Parts     []part            `json:"parts"` // of a message
}

type status struct {
	State   string
	Message struct{ Parts []part }
}

type part struct {
	Text string
	Data json.RawMessage // unparsed, which keeps the digits of numbers
}

// state returns the state in the form of version 0.3, such as input-required.
func (d *document) state() string {
	if d.Status == nil {
		return "completed"
	}
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(d.Status.State, "TASK_STATE_")), "_", "-")
}

func (d *document) running() bool { return d.state() == "submitted" || d.state() == "working" }

// parts returns the parts of the artifacts if the task is completed, otherwise those of its
// status message.
func (d *document) parts() (parts []part) {
	switch {
	case d.Status == nil:
		return d.Parts
	case d.state() != "completed":
		return d.Status.Message.Parts
	}
	for _, raw := range d.Artifacts {
		var artifact struct{ Parts []part }
		if json.Unmarshal(raw, &artifact) == nil {
			parts = append(parts, artifact.Parts...)
		}
	}
	if parts == nil {
		parts = d.Status.Message.Parts
	}
	return parts
}

func (d *document) text() string {
	var texts []string
	for _, p := range d.parts() {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// decode decodes data of an agent. The SDK for Python sends integers as 7.0.
func decode(raw json.RawMessage) (any, error) {
	v, err := value.Decode(raw)
	return value.Whole(v), err
}

// result returns the result of a task that needs input or has ended. A task that did not
// succeed is an error.
func (a *agent) result(d *document) (*Task, error) {
	state := d.state()
	kind := tea.ErrorType("agent_error")
	switch state {
	case "completed", "input-required":
		t := &Task{Success: true, State: state, Text: d.text(), TaskID: d.ID, ContextID: d.ContextID, Artifacts: []any{}}
		var err error
		for _, p := range d.parts() {
			if p.Data != nil && string(p.Data) != "null" {
				t.Data, err = decode(p.Data)
				break
			}
		}
		for _, raw := range d.Artifacts {
			artifact, wrong := decode(raw)
			t.Artifacts, err = append(t.Artifacts, artifact), cmp.Or(err, wrong)
		}
		if err != nil {
			return nil, a.errorf(tea.ConnectionError, "the result of the task %s cannot be read: %w", d.ID, err)
		}
		return t, nil
	case "auth-required":
		kind = tea.PermissionDenied
	}
	text := plaintext.Cut(d.text(), maxMessage)
	if text == "" {
		text = "no reason was given"
	}
	e := a.errorf(kind, "the task %s is %s: %s", d.ID, state, text)
	e.Details = map[string]any{"task_id": d.ID, "state": state}
	return nil, e
}

// call calls a method whose result is a task or a message. It does not retry a method that
// sends a message, since the agent may have begun the task: that is up to the node.
func (a *agent) call(ctx context.Context, e *endpoint, method string, params map[string]any) (*document, error) {
	var reply struct {
		Result json.RawMessage
		Error  *struct {
			Code    int
			Message string
		}
	}
	body := map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
	request := httpapi.Request{
		Header: http.Header{"A2A-Version": {e.method("1.0", "0.3")}}, Body: body, Unsafe: method == e.send(),
	}
	server := e.server
	if method == e.get() {
		server = e.polled
	}
	err := server.Do(ctx, request, func(r httpapi.Reply) error { return r.Decode(&reply, "an answer of JSON-RPC") })
	if err != nil {
		return nil, a.explain(err)
	}
	if reply.Error != nil {
		kind := tea.ErrorType("agent_error")
		switch reply.Error.Code {
		case codeTaskNotFound:
			kind = tea.NotFound
		case codeInvalidParams:
			kind = tea.ValidationError
		}
		return nil, a.errorf(kind, "%s (error %d of %s)", plaintext.Cut(reply.Error.Message, maxMessage), reply.Error.Code, method)
	}
	// Version 1.0 wraps the result of SendMessage by its kind.
	var wrapped struct{ Task, Message *document }
	d := &document{}
	err = json.Unmarshal(reply.Result, &wrapped)
	if err == nil && wrapped.Task == nil && wrapped.Message == nil {
		err = json.Unmarshal(reply.Result, d)
	} else if wrapped.Task != nil {
		d = wrapped.Task
	} else if wrapped.Message != nil {
		d = wrapped.Message
	}
	if err == nil && (d.Status == nil) == (d.Parts == nil) {
		return nil, a.errorf(tea.ConnectionError, "the answer to %s is neither a task nor a message", method)
	}
	if err != nil {
		return nil, a.errorf(tea.ConnectionError, "the answer to %s cannot be read: %w", method, err)
	}
	return d, nil
}

const (
	codeTaskNotFound  = -32001
	codeInvalidParams = -32602
)

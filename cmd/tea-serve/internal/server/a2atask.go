package server

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
)

// a2aForm selects the format of documents by the version of the protocol.
type a2aForm bool

const (
	a2aNew a2aForm = false // 1.0
	a2aOld a2aForm = true  // 0.3
)

// result returns a document of a kind as the result of a method or an event of a stream.
func (f a2aForm) result(kind string, doc map[string]any) map[string]any {
	if f == a2aNew {
		return map[string]any{kind: doc}
	}
	switch kind {
	case "statusUpdate":
		kind = "status-update"
	case "artifactUpdate":
		kind = "artifact-update"
	}
	doc["kind"] = kind
	return doc
}

// part returns a part of a message or an artifact. kind is text or data.
func (f a2aForm) part(kind string, v any) map[string]any {
	part := map[string]any{kind: v}
	if f == a2aOld {
		part["kind"] = kind
	}
	return part
}

// message returns a message of the agent.
func (f a2aForm) message(task, context, id string, parts ...any) map[string]any {
	m := map[string]any{"messageId": id, "taskId": task, "contextId": context, "role": "ROLE_AGENT", "parts": parts}
	if f == a2aOld {
		m["role"], m["kind"] = "agent", "message"
	}
	return m
}

// state returns the protocol's name for a state such as input-required.
func (f a2aForm) state(name string) string {
	if f == a2aOld {
		return name
	}
	return "TASK_STATE_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// a2aState returns the state of a run's task, and whether it has ended.
func a2aState(doc runDoc) (name string, ended bool) {
	switch doc.Status {
	case statusQueued:
		return "submitted", false
	case string(flow.Running):
		return "working", false
	case string(flow.Waiting):
		return "input-required", false
	case string(flow.Done):
		return "completed", true
	case string(flow.Stopped):
		return "canceled", true
	}
	return "failed", true
}

// task returns the task of a run.
func (c *a2aCall) task(doc runDoc) map[string]any {
	t := map[string]any{"id": doc.ID, "contextId": c.contextOf(doc), "status": c.status(doc)}
	if doc.Status == string(flow.Done) {
		t["artifacts"] = []any{c.artifact(doc)}
	}
	if c.form == a2aOld {
		t["kind"] = "task"
	}
	return t
}

// contextOf returns the context id of a task.
func (c *a2aCall) contextOf(doc runDoc) string {
	if c.context == "" {
		state, _ := decodeObject(doc.State)
		id, _ := state["context_id"].(string)
		c.context = cmp.Or(id, c.s.queuedContext(doc.ID), doc.ID)
	}
	return c.context
}

// queuedContext returns the context id of a run that has not begun, "" if it has none.
func (s *server) queuedContext(id string) string {
	s.mu.Lock()
	it := s.led.state.items[id]
	s.mu.Unlock()
	if it == nil {
		return ""
	}
	input, err := s.unseal(it.Input)
	if err != nil {
		return ""
	}
	context, _ := input["context_id"].(string)
	return s.svc.Hide(context)
}

// status returns the status of a run's task, whose message has the questions or the error.
func (c *a2aCall) status(doc runDoc) map[string]any {
	name, _ := a2aState(doc)
	at := doc.UpdatedAt
	if at.IsZero() {
		at = time.Now().UTC()
	}
	status := map[string]any{"state": c.form.state(name), "timestamp": at.Format("2006-01-02T15:04:05.000Z")}
	var parts []any
	switch {
	case name == "input-required":
		var texts []string
		for _, p := range doc.Pending {
			question, _ := p.(map[string]any)
			text, _ := question["question"].(string)
			texts = append(texts, cmp.Or(text, fmt.Sprint("the run waits at ", question["path"])))
		}
		parts = []any{c.form.part("text", strings.Join(texts, "\n")), c.form.part("data", map[string]any{"questions": doc.Pending})}
		if doc.Error != "" { // the run could not continue with the answer
			parts = append(parts, c.form.part("text", doc.Error))
		}
	case name == "failed" && doc.Parked != "":
		parts = []any{c.form.part("text", cmp.Or(doc.Error, doc.Parked))}
	case name == "failed":
		parts = []any{c.form.part("text", cmp.Or(doc.Error, "the run failed"))}
	}
	if parts != nil {
		status["message"] = c.form.message(doc.ID, c.contextOf(doc), doc.ID+"-"+name, parts...)
	}
	return status
}

// artifactID is the id of the only artifact of a task.
const artifactID = "result"

// artifact returns the result of a run that is done: the answer as text and the final
// state as data.
func (c *a2aCall) artifact(doc runDoc) map[string]any {
	state, err := decodeObject(doc.State)
	parts := []any{c.form.part("text", answerText(state))}
	if err == nil && state != nil {
		parts = append(parts, c.form.part("data", state))
	}
	return map[string]any{"artifactId": artifactID, "name": artifactID, "parts": parts}
}

// a2aCard returns the card of a workflow, with the fields of both versions.
func a2aCard(v *version, url string) map[string]any {
	description := cmp.Or(v.mask.Text(v.Description()), "The workflow "+v.Name()+".")
	modes := []string{"text/plain", "application/json"}
	return map[string]any{
		"name": v.Name(), "description": description, "version": v.Digest(),
		"supportedInterfaces": []any{
			map[string]any{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
			map[string]any{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
		},
		"url": url, "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0",
		"capabilities":      map[string]any{"streaming": true, "pushNotifications": false},
		"defaultInputModes": modes, "defaultOutputModes": modes,
		"skills": []any{map[string]any{"id": v.Name(), "name": v.Name(), "description": description, "tags": []string{"workflow"}}},
	}
}

// describe adds the security schemes to a card, in the format of both versions.
func (a *access) describe(card map[string]any) {
	schemes, requirements, security := map[string]any{}, []any{}, []any{}
	add := func(name string, scheme map[string]any) {
		schemes[name] = scheme
		requirements = append(requirements, map[string]any{"schemes": map[string]any{name: map[string]any{"list": []string{}}}})
		security = append(security, map[string]any{name: []string{}})
	}
	if a.tokens != nil {
		add("token", map[string]any{"type": "http", "scheme": "bearer", "httpAuthSecurityScheme": map[string]any{"scheme": "bearer"}})
	}
	if a.certificates {
		add("certificate", map[string]any{"type": "mutualTLS", "mtlsSecurityScheme": map[string]any{}})
	}
	if len(schemes) > 0 {
		card["securitySchemes"], card["securityRequirements"], card["security"] = schemes, requirements, security
	}
}

package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/cmd/internal/runview"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/value"
)

// a2aCall is an A2A request to a workflow, which acts as the agent. A task is a run, with
// the same id.
type a2aCall struct {
	s        *server
	w        http.ResponseWriter
	r        *http.Request
	workflow string
	form     a2aForm
	// id is the JSON-RPC id of the request.
	id      json.RawMessage
	params  a2aParams
	context string // the context id of the message
}

// a2aParams are the parameters of all methods.
type a2aParams struct {
	ID            string
	Message       a2aMessage
	Configuration struct {
		ReturnImmediately bool
		Blocking          *bool // version 0.3
	}
}

type a2aMessage struct {
	MessageID string    `json:"messageId"`
	ContextID string    `json:"contextId"`
	TaskID    string    `json:"taskId"`
	Parts     []a2aPart `json:"parts"`
}

type a2aPart struct {
	Text *string         `json:"text"`
	Data json.RawMessage `json:"data"`
}

const (
	// maxID is the size of an id that a client chooses. Each event of a stream has them.
	maxID = 255
	// maxParts is the number of parts of a message.
	maxParts = 1000
)

// The error codes of A2A and JSON-RPC.
const (
	a2aNoTask         = -32001
	a2aNotCancelable  = -32002
	a2aNoPush         = -32003
	a2aUnsupported    = -32004
	a2aContentType    = -32005
	a2aNoExtendedCard = -32007
	a2aNoVersion      = -32009
	rpcParse          = -32700
	rpcRequest        = -32600
	rpcMethod         = -32601
	rpcParams         = -32602
	rpcInternal       = -32603
)

// a2aError is an error with an A2A or JSON-RPC code.
type a2aError struct {
	code int
	err  error
}

func (e *a2aError) Error() string { return e.err.Error() }
func (e *a2aError) Unwrap() error { return e.err }

func a2aErrorf(code int, format string, args ...any) error {
	return &a2aError{code, fmt.Errorf(format, args...)}
}

// a2aMethod is a method of the protocol. do returns the result, or nil if it has written
// the response.
type a2aMethod struct {
	form a2aForm
	role role
	do   func(*a2aCall) (any, error)
}

// a2aMethodOf returns a method by its name in version 1.0 or 0.3.
func a2aMethodOf(name string) (m a2aMethod, err error) {
	switch name {
	case "message/send", "message/stream", "tasks/get", "tasks/cancel", "tasks/resubscribe":
		m.form = a2aOld
	}
	switch name {
	case "SendMessage", "message/send":
		m.role, m.do = roleAnswer, (*a2aCall).send
	case "SendStreamingMessage", "message/stream":
		m.role, m.do = roleAnswer, (*a2aCall).stream
	case "GetTask", "tasks/get":
		m.role, m.do = roleView, (*a2aCall).get
	case "CancelTask", "tasks/cancel":
		m.role, m.do = roleRun, (*a2aCall).cancel
	case "SubscribeToTask", "tasks/resubscribe":
		m.role, m.do = roleView, (*a2aCall).subscribe
	case "GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard":
		return m, a2aErrorf(a2aNoExtendedCard, "the agent has no extended card")
	default:
		if strings.Contains(name, "PushNotificationConfig") || strings.Contains(name, "pushNotificationConfig") {
			return m, a2aErrorf(a2aNoPush, "the server sends no push notifications; use SubscribeToTask")
		}
		return m, a2aErrorf(rpcMethod, "unknown method %.100q", name)
	}
	return m, nil
}

// postA2A serves the A2A protocol over JSON-RPC.
func (s *server) postA2A(w http.ResponseWriter, r *http.Request) error {
	c := &a2aCall{s: s, w: w, r: r, workflow: r.PathValue("name"), id: json.RawMessage("null")}
	v := s.catalog.use(c.workflow)
	if v == nil {
		return noWorkflow(c.workflow)
	}
	v.uses.Done()
	result, err := c.do()
	if err == nil && result == nil {
		return nil // the method has written the response
	}
	doc := map[string]any{"jsonrpc": "2.0", "id": c.id, "result": result}
	if err != nil {
		code := a2aCodeOf(err)
		if code == 0 {
			return err
		}
		delete(doc, "result")
		doc["error"] = map[string]any{"code": code, "message": s.svc.Hide(err.Error())}
	}
	return reply(w, http.StatusOK, doc)
}

// a2aCodeOf returns the code of an error, or 0 for an error that is reported by an HTTP
// status, such as a missing role.
func a2aCodeOf(err error) int {
	known := (*a2aError)(nil)
	switch status := statusOf(err); {
	case errors.As(err, &known):
		return known.code
	case errors.Is(err, errNoRun):
		return a2aNoTask
	case status == http.StatusConflict:
		return a2aUnsupported
	case status == http.StatusBadRequest, status == http.StatusUnprocessableEntity:
		return rpcParams
	case status == http.StatusInternalServerError:
		return rpcInternal
	}
	return 0
}

// do reads the request and calls its method.
func (c *a2aCall) do() (any, error) {
	text, err := io.ReadAll(c.r.Body)
	if err != nil {
		return nil, err
	}
	var body struct {
		JSONRPC string
		ID      json.RawMessage
		Method  string
		Params  json.RawMessage
	}
	if err := json.Unmarshal(withoutMark(text), &body); err != nil {
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			return nil, &a2aError{rpcParse, err}
		}
		return nil, &a2aError{rpcRequest, err}
	}
	if len(body.ID) > maxID {
		return nil, a2aErrorf(rpcRequest, "id: expected up to %d bytes", maxID)
	}
	if len(body.ID) > 0 && !strings.ContainsAny(string(body.ID[:1]), "{[tf") {
		c.id = body.ID
	}
	if body.JSONRPC != "2.0" {
		return nil, a2aErrorf(rpcRequest, "jsonrpc: expected %q", "2.0")
	}
	m, err := a2aMethodOf(body.Method)
	if err != nil {
		return nil, err
	}
	switch version := c.r.Header.Get("A2A-Version"); {
	case version == "", version == "1", strings.HasPrefix(version, "1."), strings.HasPrefix(version, "0.3"):
	default:
		return nil, a2aErrorf(a2aNoVersion, "A2A-Version: version %.20q is not supported; use 1.0 or 0.3", version)
	}
	if c.form = m.form; len(body.Params) > 0 {
		if err := json.Unmarshal(body.Params, &c.params); err != nil {
			return nil, &a2aError{rpcParams, err}
		}
	}
	if err := c.s.access.allowed(c.r, m.role); err != nil {
		return nil, err
	}
	return m.do(c)
}

// send starts or continues a task, and waits until it ends or needs input.
func (c *a2aCall) send() (any, error) {
	a, _, err := c.accept()
	if err != nil {
		return nil, err
	}
	blocking := c.params.Configuration.Blocking
	if a.done != nil && !c.params.Configuration.ReturnImmediately && (blocking == nil || *blocking) {
		ctx, cancel := context.WithTimeout(c.r.Context(), maxWait)
		defer cancel()
		select {
		case <-a.done:
		case <-ctx.Done():
		case <-c.s.runs.Done():
		}
	}
	doc, err := c.outcome(a)
	if err != nil {
		return nil, err
	}
	return c.form.result("task", c.task(doc)), nil
}

// outcome describes the run of a message: from memory if it has ended or waits, because
// only the result has the reason why an answered run did not continue.
func (c *a2aCall) outcome(a accepted) (doc runDoc, err error) {
	for range 2 { // it may end while it is described
		select {
		case <-a.done:
			return c.s.finished(c.r.Context(), a)
		default:
		}
		if doc.ID == "" {
			doc, err = c.describe(a.id)
		}
	}
	return doc, err
}

// describe describes the run of a task. It returns an error if the run belongs to another
// workflow or has been removed.
func (c *a2aCall) describe(id string) (runDoc, error) {
	doc, err := c.s.describeRun(c.r.Context(), id, true)
	if err == nil && doc.Workflow != c.workflow {
		return doc, noRun(id)
	}
	return doc, err
}

// accept starts a run for a message, or answers the question of its task; last is the
// number of the last event before the answer. For a repeated message it returns the run of
// the first one.
func (c *a2aCall) accept() (a accepted, last int64, err error) {
	m := c.params.Message
	if m.MessageID == "" || len(m.MessageID) > maxID {
		return a, 0, a2aErrorf(rpcParams, "message.messageId: expected 1 to %d bytes", maxID)
	}
	if len(m.ContextID) > maxID {
		return a, 0, a2aErrorf(rpcParams, "message.contextId: expected up to %d bytes", maxID)
	}
	text, err := json.Marshal(m)
	if err != nil {
		return a, 0, err
	}
	sum := sha256.Sum256(text)
	hash, key := hex.EncodeToString(sum[:8]), "a2a "+m.MessageID
	prompt, data, err := m.read()
	if err != nil {
		return a, 0, err
	}
	if m.TaskID != "" {
		return c.answer(prompt, data, key, hash)
	}
	if err := c.s.access.allowed(c.r, roleRun); err != nil {
		return a, 0, err
	}
	c.context = cmp.Or(m.ContextID, rand.Text())
	input, ok := data.(map[string]any)
	if data != nil && !ok {
		return a, 0, a2aErrorf(rpcParams, "message.parts: expected an object in data, got %s", value.TypeName(data))
	}
	input = a2aInput(input, prompt, c.context)
	v := c.s.catalog.use(c.workflow)
	if v == nil {
		return a, 0, noWorkflow(c.workflow)
	}
	err = c.s.svc.CheckInput(v.Workflow, input)
	v.uses.Done()
	if err != nil {
		return a, 0, err
	}
	a, err = c.s.accept(request{workflow: c.workflow, trigger: "a2a", input: input, key: key, hash: hash})
	if a.replayed {
		c.context = "" // the run has it
	}
	return a, 0, err
}

// read returns the text of a message and the value of its data part; nil without one.
func (m a2aMessage) read() (text string, data any, err error) {
	if n := len(m.Parts); n == 0 || n > maxParts {
		return "", nil, a2aErrorf(rpcParams, "message.parts: expected 1 to %d parts, got %d", maxParts, n)
	}
	var texts []string
	for i, p := range m.Parts {
		switch {
		case p.Text != nil:
			texts = append(texts, *p.Text)
		case len(p.Data) > 0 && data == nil:
			if data, err = value.Decode(p.Data); err != nil {
				return "", nil, a2aErrorf(rpcParams, "message.parts[%d].data: %w", i, err)
			}
			data = value.Whole(data) // the SDK for Python sends integers as 7.0
		default:
			return "", nil, a2aErrorf(a2aContentType, "message.parts[%d]: expected text or a single data part; files are not supported", i)
		}
	}
	return strings.Join(texts, "\n"), data, nil
}

// a2aInput returns the input of a run: the data of a message, its text as prompt and
// messages, as in a chat, and the id of its context.
func a2aInput(data map[string]any, text, contextID string) map[string]any {
	if data == nil {
		data = map[string]any{}
	}
	if text != "" {
		data["prompt"], data["messages"] = text, []any{map[string]any{"role": "user", "content": text}}
	}
	data["context_id"] = contextID
	return data
}

// answer answers the question of a task.
func (c *a2aCall) answer(text string, data any, key, hash string) (a accepted, last int64, err error) {
	id := c.params.Message.TaskID
	if a, err = c.repeated(key, hash); err != nil || a.replayed {
		return a, 0, err
	}
	_, contents, err := c.s.contents(id)
	if err == nil && contents.Header.Workflow != c.workflow {
		err = noRun(id)
	}
	if err != nil {
		return a, 0, err
	}
	status := c.s.statusOf(id)
	if status != string(flow.Waiting) {
		return a, 0, a2aErrorf(a2aUnsupported, "the task is %s and accepts no messages; send one without taskId to start another task", status)
	}
	pending, err := checkpoints.Pending(contents)
	if err != nil {
		return a, 0, err
	}
	answers, err := a2aAnswers(pending, text, data)
	if err != nil {
		return a, 0, &a2aError{rpcParams, err}
	}
	err = c.s.storedEvents(id, 0, 0, func(seq int64, _ []byte) error {
		last = seq
		return nil
	})
	if err != nil {
		return a, 0, err
	}
	v := c.s.catalog.use(c.workflow)
	if v == nil {
		return a, 0, noWorkflow(c.workflow)
	}
	now := time.Now()
	resume := &resumption{
		By:  c.s.access.ownerOf(c.r).Name,
		key: &keyUse{Key: c.s.keyName(c.workflow, key), Run: id, Hash: hash, At: now.Round(0), Until: now.Add(keyTime(v.serving.Config()))},
	}
	v.uses.Done()
	for id := range answers {
		resume.questions = append(resume.questions, id)
	}
	if resume.Answers, err = c.s.seal(answers); err != nil {
		return a, 0, err
	}
	if a, err = c.s.resume(contents, resume); errors.Is(err, errRepeated) {
		if a, err = c.repeated(key, hash); err == nil && !a.replayed {
			err = errRepeated // the key has just expired, or could not be recorded
		}
	}
	return a, last, err
}

// a2aAnswers returns the answers in a message by the ids of the questions.
func a2aAnswers(pending []flow.Interrupt, text string, data any) (map[string]any, error) {
	given := map[string]any{}
	object, _ := data.(map[string]any)
	if byID, ok := object["answers"].(map[string]any); ok && len(object) == 1 {
		given = byID
	} else {
		if len(pending) != 1 {
			return nil, fmt.Errorf("the task has %d questions; send data with their answers: {\"answers\": {ID: ANSWER}}", len(pending))
		}
		if data == nil {
			var err error
			if data, err = runview.ParseAnswer(pending[0], strings.TrimSpace(text)); err != nil {
				return nil, err
			}
		}
		given[pending[0].ID] = data
	}
	return runview.AnswersTo(pending, given)
}

// repeated returns the run of an earlier message with the same id.
func (c *a2aCall) repeated(key, hash string) (accepted, error) {
	c.s.mu.Lock()
	a, err := c.s.keyed(c.workflow, key, hash)
	if err != nil || !a.replayed {
		c.s.mu.Unlock()
		return a, err
	}
	b, err := c.s.led.add(true)
	c.s.mu.Unlock()
	if err == nil {
		err = b.wait() // the earlier message may not be on disk yet
	}
	if err == nil && a.item != nil {
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		err = a.item.refused
	}
	return a, err
}

// get describes a task.
func (c *a2aCall) get() (any, error) {
	doc, err := c.describe(c.params.ID)
	if err != nil {
		return nil, err
	}
	return c.task(doc), nil
}

// cancel stops a task.
func (c *a2aCall) cancel() (any, error) {
	if _, err := c.describe(c.params.ID); err != nil {
		return nil, err
	}
	if _, err := c.s.cancel(c.r.Context(), c.params.ID); err != nil {
		if statusOf(err) == http.StatusConflict {
			err = &a2aError{a2aNotCancelable, err}
		}
		return nil, err
	}
	return c.get()
}

// getAgentCard describes a workflow as an agent.
func (s *server) getAgentCard(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if names := s.catalog.names(); name == "" {
		if len(names) != 1 {
			return &statusError{http.StatusNotFound, fmt.Errorf("the server has %d agents; the card of each is at /a2a/NAME/.well-known/agent-card.json; GET /v1/workflows lists the names", len(names))}
		}
		name = names[0]
	}
	v := s.catalog.use(name)
	if v == nil {
		return noWorkflow(name)
	}
	defer v.uses.Done()
	base := s.flags.PublicURL
	if base == "" {
		base = "http://" + r.Host
		if r.TLS != nil {
			base = "https://" + r.Host
		}
	}
	card := a2aCard(v, strings.TrimRight(base, "/")+"/a2a/"+url.PathEscape(name))
	s.access.describe(card)
	return reply(w, http.StatusOK, card)
}

package server

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/the-edge-agent/tea/host/flow"
)

// a2aStream sends the updates of a task as server-sent events.
type a2aStream struct {
	*a2aCall
	id     string
	chunks int
}

// stream starts or continues a task, and streams its updates.
func (c *a2aCall) stream() (any, error) {
	a, last, err := c.accept()
	if err != nil {
		return nil, err
	}
	doc, err := c.outcome(a)
	if err != nil {
		return nil, err
	}
	return nil, c.follow(doc, last, a)
}

// subscribe streams the updates of a task from its beginning, because a client cannot use
// a part of the artifact without the earlier parts.
func (c *a2aCall) subscribe() (any, error) {
	doc, err := c.describe(c.params.ID)
	if err != nil {
		return nil, err
	}
	if name, ended := a2aState(doc); ended {
		return nil, a2aErrorf(a2aUnsupported, "the task is %s and has no further updates; use GetTask", name)
	}
	return nil, c.follow(doc, 0, accepted{id: doc.ID})
}

// follow sends the task and its updates until it ends or needs input.
func (c *a2aCall) follow(doc runDoc, last int64, a accepted) error {
	st := &a2aStream{a2aCall: c, id: doc.ID}
	e := &eventStream{s: c.s, w: c.w, control: http.NewResponseController(c.w), id: doc.ID, last: last, sent: true, each: st.event} // it does not wait for the next answer
	if err := e.start(); err != nil {
		return err
	}
	_, _ = c.w.Write(st.encode("task", c.task(doc))) // the client is gone
	if name, ended := a2aState(doc); ended || name == "input-required" {
		return nil
	}
	if err := e.run(c.r.Context()); err != nil {
		return nil //nolint:nilerr // the client is gone, or the server is stopping
	}
	if a.done != nil {
		select {
		case <-a.done:
		case <-c.r.Context().Done():
			return nil
		case <-c.s.runs.Done():
			return nil
		}
	}
	doc, err := c.outcome(a)
	if err != nil {
		return nil //nolint:nilerr // the run was removed: GetTask reports it
	}
	e.deadline()
	if doc.Status == string(flow.Done) {
		_, _ = c.w.Write(st.artifactUpdate(c.artifact(doc), false, true))
		e.deadline()
	}
	_, _ = c.w.Write(st.statusUpdate(c.status(doc), true))
	return nil
}

// event returns the update for an event of the run; nil if there is none.
func (st *a2aStream) event(line []byte) []byte {
	var e struct {
		Event, Text, Message string
		Progress             *float64
	}
	if json.Unmarshal(line, &e) != nil {
		return nil
	}
	switch {
	case e.Event == string(flow.EventRunStart):
		return st.working()
	case e.Event == string(flow.EventLog) && e.Progress != nil:
		return st.working(st.form.part("text", e.Message))
	case e.Event == string(flow.EventToken):
		st.chunks++
		artifact := map[string]any{"artifactId": artifactID, "name": artifactID, "parts": []any{st.form.part("text", e.Text)}}
		return st.artifactUpdate(artifact, st.chunks > 1, false)
	}
	return nil
}

// working returns an update of a running task.
func (st *a2aStream) working(parts ...any) []byte {
	status := st.status(runDoc{ID: st.id, Status: string(flow.Running)})
	if len(parts) > 0 {
		status["message"] = st.form.message(st.id, st.context, st.id+"-progress", parts...)
	}
	return st.statusUpdate(status, false)
}

func (st *a2aStream) statusUpdate(status map[string]any, final bool) []byte {
	update := map[string]any{"taskId": st.id, "contextId": st.context, "status": status}
	if st.form == a2aOld {
		update["final"] = final
	}
	return st.encode("statusUpdate", update)
}

// artifactUpdate returns an update of the artifact. If add is set, the client appends it
// to the parts before; otherwise it replaces them.
func (st *a2aStream) artifactUpdate(artifact map[string]any, add, last bool) []byte {
	return st.encode("artifactUpdate", map[string]any{"taskId": st.id, "contextId": st.context, "artifact": artifact, "append": add, "lastChunk": last})
}

// encode returns an event of the stream.
func (st *a2aStream) encode(kind string, doc map[string]any) []byte {
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": st.a2aCall.id, "result": st.form.result(kind, doc)})
	if err != nil {
		return nil // the values are valid
	}
	return fmt.Appendf(nil, "data: %s\n\n", text)
}

package engine

import (
	"strconv"
	"time"

	"github.com/the-edge-agent/tea/host/internal/graph"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// EventType says what happened.
type EventType string

// The types of events, SPEC 3.3.
const (
	EventRunStart    EventType = "run_start"
	EventNodeStart   EventType = "node_start"
	EventNodeEnd     EventType = "node_end"
	EventNodeError   EventType = "node_error"
	EventRetry       EventType = "retry"
	EventBranchStart EventType = "branch_start"
	EventBranchEnd   EventType = "branch_end"
	EventLoop        EventType = "loop"
	EventToken       EventType = "token"
	EventLog         EventType = "log"
	EventInterrupt   EventType = "interrupt"
	EventCheckpoint  EventType = "checkpoint"
	EventRunEnd      EventType = "run_end"
)

// Event is one thing that happened in a run. Fields are the event's own,
// masked of secrets; they are shared and must not be changed.
type Event struct {
	Seq    int64
	Time   time.Time
	RunID  string
	Type   EventType
	Node   string
	Path   string
	Fields map[string]any
}

// MarshalJSON writes the event as one flat object.
func (e Event) MarshalJSON() ([]byte, error) {
	dst := append(make([]byte, 0, 160), `{"seq":`...)
	dst = strconv.AppendInt(dst, e.Seq, 10)
	dst = append(append(dst, `,"ts":"`...), e.Time.UTC().Format(time.RFC3339Nano)...)
	dst = append(dst, `","run_id":`...)
	dst = value.AppendString(dst, e.RunID)
	dst = append(dst, `,"event":`...)
	dst = value.AppendString(dst, string(e.Type))
	if e.Node != "" {
		dst = append(dst, `,"node":`...)
		dst = value.AppendString(dst, e.Node)
	}
	if e.Path != "" {
		dst = append(dst, `,"path":`...)
		dst = value.AppendString(dst, e.Path)
	}
	if len(e.Fields) > 0 {
		fields, err := value.Encode(e.Fields)
		if err != nil {
			return nil, err
		}
		dst = append(append(dst, ','), fields[1:len(fields)-1]...)
	}
	return append(dst, '}'), nil
}

// emit sends an event. Callers with costly fields ask listening first.
func (r *run) emit(t EventType, node, path string, fields map[string]any) {
	if !r.listening() {
		return
	}
	if fields != nil && r.o.Secrets != nil {
		fields, _ = r.o.Secrets.Redact(fields).(map[string]any)
	}
	r.eventMu.Lock()
	defer r.eventMu.Unlock()
	r.seq++
	r.o.Events(Event{Seq: r.seq, Time: r.now(), RunID: r.o.RunID, Type: t, Node: node, Path: path, Fields: fields})
}

func (r *run) listening() bool { return r.o.Events != nil }

// emitNodeStart emits the start of a node, with the action it uses.
func (f *frame) emitNodeStart(n *graph.Node, path string) {
	if !f.run.listening() {
		return
	}
	var fields map[string]any
	if a, ok := n.Body.(*graph.Action); ok {
		fields = map[string]any{"uses": a.Uses}
	}
	f.run.emit(EventNodeStart, n.Name, path, fields)
}

// emitNodeEnd emits the end of a node; x is nil for one that was skipped or failed.
func (f *frame) emitNodeEnd(n *graph.Node, path string, rec *nodeRecord, x *execution) {
	r := f.run
	if !r.listening() || rec.failure != nil {
		return
	}
	if rec.skipped {
		r.emit(EventNodeEnd, n.Name, path, map[string]any{"skipped": true})
		return
	}
	fields := map[string]any{"duration_ms": milliseconds(r.now().Sub(x.started))}
	if x.attempt > 1 {
		fields["attempts"] = int64(x.attempt)
	}
	if result, ok := rec.result.(map[string]any); ok {
		for _, key := range []string{"usage", "cost_usd", "model", "provider", "finish_reason"} {
			if v, ok := result[key]; ok {
				fields[key] = v
			}
		}
	}
	r.emit(EventNodeEnd, n.Name, path, fields)
}

func (f *frame) emitNodeError(x *execution, failure *tea.Error) {
	if !f.run.listening() {
		return
	}
	fields := failureFields(failure)
	fields["attempts"] = int64(x.attempt)
	fields["duration_ms"] = milliseconds(f.run.now().Sub(x.started))
	f.run.emit(EventNodeError, x.node.Name, x.path, fields)
}

package engine

import (
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/graph"
	tea "github.com/the-edge-agent/tea/sdk"
)

// emit sends an event. Callers with costly fields ask listening first.
func (r *run) emit(t flow.EventType, node, path string, fields map[string]any) {
	if !r.listening() {
		return
	}
	if fields != nil && r.o.Secrets != nil {
		fields, _ = r.o.Secrets.Redact(fields).(map[string]any)
	}
	r.eventMu.Lock()
	defer r.eventMu.Unlock()
	r.seq++
	r.o.Events(flow.Event{Seq: r.seq, Time: r.now(), RunID: r.o.RunID, Type: t, Node: node, Path: path, Fields: fields})
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
	f.run.emit(flow.EventNodeStart, n.Name, path, fields)
}

// emitNodeEnd emits the end of a node; x is nil for one that was skipped or failed.
func (f *frame) emitNodeEnd(n *graph.Node, path string, rec *nodeRecord, x *execution) {
	r := f.run
	if !r.listening() || rec.failure != nil {
		return
	}
	if rec.skipped {
		r.emit(flow.EventNodeEnd, n.Name, path, map[string]any{"skipped": true})
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
	r.emit(flow.EventNodeEnd, n.Name, path, fields)
}

func (f *frame) emitNodeError(x *execution, failure *tea.Error) {
	if !f.run.listening() {
		return
	}
	fields := failureFields(failure)
	fields["attempts"] = int64(x.attempt)
	fields["duration_ms"] = milliseconds(f.run.now().Sub(x.started))
	f.run.emit(flow.EventNodeError, x.node.Name, x.path, fields)
}

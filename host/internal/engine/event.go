package engine

import (
	"maps"
	"slices"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/engine/replay"
	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/internal/execpath"
	tea "github.com/the-edge-agent/tea/sdk"
)

// emit emits an event. Callers with costly fields check listening first.
func (r *run) emit(t flow.EventType, node string, path execpath.Path, fields ...flow.Field) {
	r.emitWith(nil, t, node, path, fields...)
}

// emitWith emits an event and then the values of its node.
func (r *run) emitWith(values []flow.Field, t flow.EventType, node string, path execpath.Path, fields ...flow.Field) {
	if !r.listening() {
		return
	}
	if r.o.Secrets != nil {
		for i, f := range fields {
			fields[i].Value = r.o.Secrets.Redact(f.Value)
		}
	}
	r.eventMu.Lock()
	defer r.eventMu.Unlock()
	r.seq++
	e := flow.Event{Seq: r.seq, Time: r.now(), RunID: r.o.RunID, Type: t, Node: node, Path: string(path), Fields: fields}
	r.o.Events(e)
	if len(values) > 0 {
		e.Type, e.Fields = flow.EventValues, values
		r.o.Values(e)
	}
}

func field(key string, v any) flow.Field { return flow.Field{Key: key, Value: v} }

// failed returns the fields of an error, followed by others.
func failed(e *tea.Error, more ...flow.Field) []flow.Field {
	return slices.Concat(memberFields(failureFields(e)), more)
}

// memberFields returns the members of an object, sorted by name.
func memberFields(m map[string]any) []flow.Field {
	fields := make([]flow.Field, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		fields = append(fields, field(key, m[key]))
	}
	return fields
}

func (r *run) listening() bool { return r.o.Events != nil }

// emitNodeStart emits the start of a node, with the action it uses.
func (f *frame) emitNodeStart(n *graph.Node, path execpath.Path) {
	if !f.run.listening() {
		return
	}
	if a, ok := n.Body.(*graph.Action); ok {
		f.run.emit(flow.EventNodeStart, n.Name, path, field("uses", a.Uses))
	} else {
		f.run.emit(flow.EventNodeStart, n.Name, path)
	}
}

// emitNodeEnd emits the end of a node; x is nil if the node was skipped or failed.
func (f *frame) emitNodeEnd(n *graph.Node, path execpath.Path, rec *replay.Node, x *execution) {
	r := f.run
	if !r.listening() || rec.Failure != nil {
		return
	}
	if rec.Skipped {
		r.emit(flow.EventNodeEnd, n.Name, path, field("skipped", true))
		return
	}
	fields := []flow.Field{field("duration_ms", milliseconds(r.now().Sub(x.started)))}
	if x.attempt > 1 {
		fields = append(fields, field("attempts", int64(x.attempt)))
	}
	if result, ok := rec.Result.(map[string]any); ok {
		for _, key := range []string{"usage", "cost_usd", "model", "provider", "finish_reason"} {
			if v, ok := result[key]; ok {
				fields = append(fields, field(key, v))
			}
		}
	}
	r.emitWith(r.values(x.params, rec.Result), flow.EventNodeEnd, n.Name, path, fields...)
}

// maxFiles bounds the files that are reported for a call.
const maxFiles = 1000

// emitFiles emits an event for each file that a call has written; see [tea.WritesFiles].
func (x *execution) emitFiles(action string, params tea.Payload, res *tea.Response) {
	r := x.frame.run
	if !r.listening() || r.o.DryRun {
		return
	}
	info, _ := r.o.Actions.Describe(action)
	if info.Result == nil || info.Result.Extra[tea.Files] == nil {
		return
	}
	v, _ := res.Result.Shared() // the caller reports what is not JSON
	result, _ := v.(map[string]any)
	member, _ := info.Result.Extra[tea.Files].(string)
	list, isList := result[member].([]any)
	if !isList {
		list = []any{result[member]}
	}
	for _, file := range list[:min(len(list), maxFiles)] {
		if file, ok := file.(string); ok && file != "" {
			fields := []flow.Field{field("call", action), field("file", file)}
			if given, err := params.Shared(); err != nil || r.o.Secrets.In(given) {
				fields = append(fields, field("secrets", true))
			}
			if size, ok := result["bytes"].(int64); ok {
				fields = append(fields, field("bytes", size))
			}
			r.emit(flow.EventFile, x.node.Name, x.path, fields...)
		}
	}
}

func (f *frame) emitNodeError(x *execution, failure *tea.Error) {
	if !f.run.listening() {
		return
	}
	f.run.emitWith(f.run.values(x.params, nil), flow.EventNodeError, x.node.Name, x.path, failed(failure,
		field("attempts", int64(x.attempt)), field("duration_ms", milliseconds(f.run.now().Sub(x.started))))...)
}

package engine

import (
	"github.com/the-edge-agent/tea/host/internal/graph"
	tea "github.com/the-edge-agent/tea/sdk"
)

// errorsKey collects the failures of nodes with on_error: continue.
const errorsKey = "__errors__"

// tellStart emits the start of a node, with the action it uses.
func (f *frame) tellStart(n *graph.Node, path string) {
	if !f.run.listening() {
		return
	}
	var fields map[string]any
	if a, ok := n.Body.(*graph.Action); ok {
		fields = map[string]any{"uses": a.Uses}
	}
	f.run.emit(EventNodeStart, n.Name, path, fields)
}

// tellEnd emits the end of a node; x is nil for one that was skipped or failed.
func (f *frame) tellEnd(n *graph.Node, path string, rec *nodeRecord, x *execution) {
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

func (f *frame) tellError(x *execution, failure *tea.Error) {
	if !f.run.listening() {
		return
	}
	fields := failureFields(failure)
	fields["attempts"] = int64(x.attempt)
	fields["duration_ms"] = milliseconds(f.run.now().Sub(x.started))
	f.run.emit(EventNodeError, x.node.Name, x.path, fields)
}

// failureResult is the result of a failed node that the run goes on from.
func failureResult(failure *tea.Error) map[string]any {
	m := failureFields(failure)
	m["success"] = false
	return m
}

// noteFailure appends a failure to the state's list of errors.
func (f *frame) noteFailure(path string, failure *tea.Error) {
	entry := failureFields(failure)
	entry["node"] = path
	f.noteErrors([]any{entry})
}

func (f *frame) noteErrors(entries []any) {
	if len(entries) == 0 {
		return
	}
	old, _ := f.state.Get(errorsKey)
	list, _ := old.([]any)
	all := make([]any, 0, len(list)+len(entries))
	f.state.Set(errorsKey, append(append(all, list...), entries...))
	if f.outer != nil {
		f.failures = append(f.failures, entries...)
	}
}

package trace

import (
	"maps"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/builtin/traceactions"
	"github.com/the-edge-agent/tea/host/internal/tracecontext"
)

// take updates the run's spans with an event.
func (r *tracedRun) take(e flow.Event) {
	switch e.Type {
	case flow.EventRunStart:
		if name := e.Text("workflow"); name != "" {
			r.root.name = name
		}
		r.root.set("tea.resumed", e.Field("resumed"))
	case flow.EventNodeStart:
		r.startNode(e)
	case flow.EventNodeEnd, flow.EventNodeError:
		r.endNode(e)
	case flow.EventRetry:
		r.retry(e)
	case flow.EventBranchStart:
		s := r.child(pathOf(e), "branch "+e.Text("branch"), tracecontext.SpanOf(e.Path, 0), e.Time)
		s.set("tea.path", e.Path)
		r.update(pathOf(e), func(o *openSpans) { o.branch = s })
	case flow.EventBranchEnd:
		r.endBranch(e)
	case flow.EventToken:
		if r.tracer.contents {
			if s := r.belongsTo(pathOf(e)); len(s.tokens) < mostContent {
				s.tokens = append(s.tokens, e.Text("text")...)
			}
		}
	case flow.EventLog:
		r.log(e)
	case flow.EventLoop, flow.EventInterrupt, flow.EventCheckpoint:
		r.belongsTo(pathOf(e)).note(e.Time, string(e.Type), object(e))
	case flow.EventRunEnd:
		r.endRun(e)
	}
}

func (r *tracedRun) startNode(e flow.Event) {
	s := r.child(pathOf(e), e.Node, tracecontext.SpanOf(e.Path, 1), e.Time)
	s.action = e.Text("uses")
	s.set("tea.node", e.Node)
	s.set("tea.path", e.Path)
	s.set("tea.action", s.action)
	r.update(pathOf(e), func(o *openSpans) { o.node = s })
}

func (r *tracedRun) endNode(e flow.Event) {
	s := r.at(pathOf(e)).node
	if s == nil {
		return // skipped, or finished before the run was resumed
	}
	s.set("tea.attempts", e.Field("attempts"))
	s.latest().answer(object(e))
	r.update(pathOf(e), func(o *openSpans) { o.node = nil })
	r.end(s, e)
}

func (r *tracedRun) endBranch(e flow.Event) {
	open := r.at(pathOf(e))
	s := open.branch
	if s == nil {
		return // recalled from the checkpoint, or refused by its breaker
	}
	if open.node != nil {
		r.abandon(pathOf(e), e.Time)
		r.unfinished(open.node, e.Time)
	}
	r.update(pathOf(e), func(o *openSpans) { o.branch, o.node = nil, nil })
	r.end(s, e)
}

// end ends a node or branch as reported by an event, together with its current retry and
// the spans that are still open inside.
func (r *tracedRun) end(s *span, e flow.Event) {
	r.abandon(pathOf(e), e.Time)
	errorType, failed := e.Field("error_type").(string)
	for _, ending := range []*span{s.again, s} {
		if ending == nil {
			continue
		}
		if failed {
			ending.fail(e.Time, errorType, e.Text("error"))
		}
		r.finish(ending, e.Time)
	}
}

// retry records why an attempt failed and begins the span of the next one.
func (r *tracedRun) retry(e flow.Event) {
	failed, _ := e.Field("attempt").(int64)
	next := int(failed) + 1
	first, id := r.at(pathOf(e)).node, tracecontext.SpanOf(e.Path, next) // the same as in the plugin's trace context
	if e.Node == "" {
		first, id = r.at(pathOf(e)).branch, tracecontext.SpanOf(string(pathOf(e).Attempt(next)), 0)
	}
	if first == nil {
		return
	}
	r.abandon(pathOf(e), e.Time)
	if first.again != nil {
		first.again.fail(e.Time, e.Text("error_type"), e.Text("error"))
		r.finish(first.again, e.Time)
	}
	first.note(e.Time, "retry", object(e))
	first.again = &span{
		trace: r.trace, id: id, parent: first.id, name: first.name, kind: kindInternal, action: first.action,
		start: e.Time.Add(milliseconds(object(e), "wait_ms")), attributes: map[string]any{"tea.attempt": int64(next)},
	}
}

func (r *tracedRun) log(e flow.Event) {
	fields, _ := e.Field("fields").(map[string]any)
	attributes := maps.Clone(fields)
	if attributes == nil {
		attributes = map[string]any{}
	}
	delete(attributes, traceactions.MarkKey)
	attributes["level"] = e.Field("level")
	if p := e.Field("progress"); p != nil {
		attributes["progress"] = p
	}
	if m, ok := traceactions.MarkOf(fields); ok {
		r.mark(e, m, attributes)
		return
	}
	r.belongsTo(pathOf(e)).note(e.Time, e.Text("message"), attributes)
}

func (r *tracedRun) endRun(e flow.Event) {
	r.abandon("", e.Time)
	for _, key := range []string{"status", "steps", "tokens", "usd"} {
		r.root.set("tea."+key, e.Field(key))
	}
	if e.Text("status") == string(flow.Failed) {
		r.root.fail(e.Time, e.Text("error_type"), e.Text("error"))
	}
	r.finish(r.root, e.Time)
}

// object returns the fields of an event as an object.
func object(e flow.Event) map[string]any {
	m := make(map[string]any, len(e.Fields))
	for _, f := range e.Fields {
		m[f.Key] = f.Value
	}
	return m
}

package trace

import (
	"fmt"
	"maps"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/builtin/traceactions"
	"github.com/the-edge-agent/tea/host/internal/tracecontext"
)

// take brings an event into the run's spans.
func (r *tracedRun) take(e flow.Event) {
	switch e.Type {
	case flow.EventRunStart:
		if name := text(e.Fields, "workflow"); name != "" {
			r.root.name = name
		}
		r.root.set("tea.resumed", e.Fields["resumed"])
	case flow.EventNodeStart:
		r.startNode(e)
	case flow.EventNodeEnd, flow.EventNodeError:
		r.endNode(e)
	case flow.EventRetry:
		r.retry(e)
	case flow.EventBranchStart:
		s := r.child(e.Path, "branch "+text(e.Fields, "branch"), tracecontext.SpanOf(e.Path, 0), e.Time)
		s.set("tea.path", e.Path)
		r.update(e.Path, func(o *openSpans) { o.branch = s })
	case flow.EventBranchEnd:
		r.endBranch(e)
	case flow.EventToken:
		if r.tracer.contents {
			if s := r.belongsTo(e.Path); len(s.said) < mostContent {
				s.said = append(s.said, text(e.Fields, "text")...)
			}
		}
	case flow.EventLog:
		r.log(e)
	case flow.EventLoop, flow.EventInterrupt, flow.EventCheckpoint:
		r.belongsTo(e.Path).note(e.Time, string(e.Type), e.Fields)
	case flow.EventRunEnd:
		r.endRun(e)
	}
}

func (r *tracedRun) startNode(e flow.Event) {
	s := r.child(e.Path, e.Node, tracecontext.SpanOf(e.Path, 1), e.Time)
	s.action = text(e.Fields, "uses")
	s.set("tea.node", e.Node)
	s.set("tea.path", e.Path)
	s.set("tea.action", s.action)
	r.update(e.Path, func(o *openSpans) { o.node = s })
}

func (r *tracedRun) endNode(e flow.Event) {
	s := r.at(e.Path).node
	if s == nil {
		return // skipped, or finished before the run was resumed
	}
	s.set("tea.attempts", e.Fields["attempts"])
	s.latest().answer(e.Fields)
	r.update(e.Path, func(o *openSpans) { o.node = nil })
	r.end(s, e)
}

func (r *tracedRun) endBranch(e flow.Event) {
	open := r.at(e.Path)
	s := open.branch
	if s == nil {
		return // recalled from the checkpoint, or refused by its breaker
	}
	if open.node != nil {
		r.abandon(e.Path, e.Time)
		r.unfinished(open.node, e.Time)
	}
	r.update(e.Path, func(o *openSpans) { o.branch, o.node = nil, nil })
	r.end(s, e)
}

// end ends a node or branch as an event says, with its repetition and
// whatever is still open inside.
func (r *tracedRun) end(s *span, e flow.Event) {
	r.abandon(e.Path, e.Time)
	errorType, failed := e.Fields["error_type"].(string)
	for _, ending := range []*span{s.again, s} {
		if ending == nil {
			continue
		}
		if failed {
			ending.fail(e.Time, errorType, text(e.Fields, "error"))
		}
		r.finish(ending, e.Time)
	}
}

// retry notes why an attempt failed and begins the span of the next one.
func (r *tracedRun) retry(e flow.Event) {
	failed, _ := e.Fields["attempt"].(int64)
	next := int(failed) + 1
	first, id := r.at(e.Path).node, tracecontext.SpanOf(e.Path, next) // as plugins are told
	if e.Node == "" {
		first, id = r.at(e.Path).branch, tracecontext.SpanOf(fmt.Sprintf("%s~%d", e.Path, next), 0)
	}
	if first == nil {
		return
	}
	r.abandon(e.Path, e.Time)
	if first.again != nil {
		first.again.fail(e.Time, text(e.Fields, "error_type"), text(e.Fields, "error"))
		r.finish(first.again, e.Time)
	}
	first.note(e.Time, "retry", e.Fields)
	first.again = &span{
		trace: r.trace, id: id, parent: first.id, name: first.name, kind: kindInternal, action: first.action,
		start: e.Time.Add(milliseconds(e.Fields, "wait_ms")), attributes: map[string]any{"tea.attempt": int64(next)},
	}
}

func (r *tracedRun) log(e flow.Event) {
	fields, _ := e.Fields["fields"].(map[string]any)
	attributes := maps.Clone(fields)
	if attributes == nil {
		attributes = map[string]any{}
	}
	delete(attributes, traceactions.MarkKey)
	attributes["level"] = e.Fields["level"]
	if p, ok := e.Fields["progress"]; ok {
		attributes["progress"] = p
	}
	if m, ok := traceactions.MarkOf(fields); ok {
		r.mark(e, m, attributes)
		return
	}
	r.belongsTo(e.Path).note(e.Time, text(e.Fields, "message"), attributes)
}

func (r *tracedRun) endRun(e flow.Event) {
	r.abandon("", e.Time)
	for _, key := range []string{"status", "steps", "tokens", "usd"} {
		r.root.set("tea."+key, e.Fields[key])
	}
	if text(e.Fields, "status") == string(flow.Failed) {
		r.root.fail(e.Time, text(e.Fields, "error_type"), text(e.Fields, "error"))
	}
	r.finish(r.root, e.Time)
}

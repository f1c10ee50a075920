package trace

import (
	"maps"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/internal/builtin/traceactions"
	"github.com/the-edge-agent/tea/host/internal/tracecontext"
)

// take brings an event into the run's spans.
func (r *tracedRun) take(e host.Event) {
	switch e.Type {
	case host.EventRunStart:
		if name := text(e.Fields, "workflow"); name != "" {
			r.root.name = name
		}
		r.root.set("tea.resumed", e.Fields["resumed"])
	case host.EventNodeStart:
		r.startNode(e)
	case host.EventNodeEnd, host.EventNodeError:
		r.endNode(e)
	case host.EventRetry:
		r.retry(e)
	case host.EventBranchStart:
		s := r.child(e.Path, "branch "+text(e.Fields, "branch"), tracecontext.SpanOf(e.Path, 0), e.Time)
		s.set("tea.path", e.Path)
		r.branches[e.Path] = s
	case host.EventBranchEnd:
		r.endBranch(e)
	case host.EventToken:
		if r.tracer.contents {
			if s := r.at(e.Path); len(s.said) < mostContent {
				s.said = append(s.said, text(e.Fields, "text")...)
			}
		}
	case host.EventLog:
		r.log(e)
	case host.EventLoop, host.EventInterrupt, host.EventCheckpoint:
		r.at(e.Path).note(e.Time, string(e.Type), e.Fields)
	case host.EventRunEnd:
		r.end(e)
	}
}

func (r *tracedRun) startNode(e host.Event) {
	s := r.child(e.Path, e.Node, tracecontext.SpanOf(e.Path, 1), e.Time)
	s.action = text(e.Fields, "uses")
	s.set("tea.node", e.Node)
	s.set("tea.path", e.Path)
	s.set("tea.action", s.action)
	r.nodes[e.Path] = s
}

func (r *tracedRun) endNode(e host.Event) {
	s := r.nodes[e.Path]
	if s == nil {
		return // skipped, or finished before the run was resumed
	}
	s.set("tea.attempts", e.Fields["attempts"])
	if attempt := r.at(e.Path); attempt != s {
		r.endAttempt(e, attempt)
	}
	r.abandon(e.Path, e.Time)
	if _, called := s.attributes["gen_ai.operation.name"]; !called {
		s.answer(e.Fields)
	}
	if e.Type == host.EventNodeError {
		s.fail(e.Time, text(e.Fields, "error_type"), text(e.Fields, "error"))
	}
	delete(r.nodes, e.Path)
	r.finish(s, e.Time)
}

// endAttempt ends the latest repetition of a node or branch.
func (r *tracedRun) endAttempt(e host.Event, path string, open map[string]*span) {
	attempt := open[path]
	r.abandon(path, e.Time)
	delete(open, path)
	if message := text(e.Fields, "error"); message != "" {
		attempt.fail(e.Time, text(e.Fields, "error_type"), message)
	}
	r.finish(attempt, e.Time)
}

// endAttempts ends the repetition of a node or branch that goes on, if there
// is one, and whatever is open below.
func (r *tracedRun) endAttempts(e host.Event, open map[string]*span) {
	for n := 2; ; n++ {
		path := attemptPath(e.Path, n)
		if open[path] != nil {
			r.endAttempt(e, path, open)
			break
		}
		if n > int(milliseconds(e.Fields, "attempts")) {
			break
		}
	}
	r.abandon(e.Path, e.Time)
}

// retry notes why an attempt failed and begins the span of the next one. The
// first attempt is the span of the node or branch itself.
func (r *tracedRun) retry(e host.Event) {
	failed, _ := e.Fields["attempt"].(int64)
	next := int(failed) + 1
	open, id := r.nodes, tracecontext.SpanOf(e.Path, next)
	if e.Node == "" {
		open, id = r.branches, tracecontext.SpanOf(attemptPath(e.Path, next), 0)
	}
	first := open[e.Path]
	if first == nil {
		return
	}
	if attempt := open[attemptPath(e.Path, int(failed))]; attempt != nil {
		r.endAttempt(e, attempt)
	}
	r.abandon(e.Path, e.Time)
	first.note(e.Time, "retry", e.Fields)
	open[attemptPath(e.Path, next)] = &span{
		trace: r.trace, id: id, parent: first.id, name: first.name, kind: kindInternal, action: first.action,
		start: e.Time.Add(milliseconds(e.Fields, "wait_ms")), attributes: map[string]any{"tea.attempt": int64(next)},
	}
}

func (r *tracedRun) endBranch(e host.Event) {
	s := r.branches[e.Path]
	if s == nil {
		return // recalled from the checkpoint, or refused by its breaker
	}
	for n := 2; ; n++ {
		attempt := r.branches[attemptPath(e.Path, n)]
		if attempt == nil {
			break
		}
		r.endAttempt(e, attempt)
	}
	r.abandon(e.Path, e.Time)
	if node := r.nodes[e.Path]; node != nil {
		delete(r.nodes, e.Path)
		r.unfinished(node, e.Time)
	}
	if message := text(e.Fields, "error"); message != "" {
		s.fail(e.Time, text(e.Fields, "error_type"), message)
	}
	delete(r.branches, e.Path)
	r.finish(s, e.Time)
}

func (r *tracedRun) log(e host.Event) {
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
	r.at(e.Path).note(e.Time, text(e.Fields, "message"), attributes)
}

func (r *tracedRun) end(e host.Event) {
	r.abandon("", e.Time)
	for _, key := range []string{"status", "steps", "tokens", "usd"} {
		r.root.set("tea."+key, e.Fields[key])
	}
	if text(e.Fields, "status") == string(host.Failed) {
		r.root.fail(e.Time, text(e.Fields, "error_type"), text(e.Fields, "error"))
	}
	r.finish(r.root, e.Time)
}

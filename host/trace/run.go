package trace

import (
	"slices"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/builtin/traceactions"
	"github.com/the-edge-agent/tea/host/internal/tracecontext"
	"github.com/the-edge-agent/tea/internal/execpath"
)

// tracedRun has the open spans of one run. It is guarded by its tracer's lock.
type tracedRun struct {
	tracer *Tracer
	trace  tracecontext.Trace
	root   *span
	// open are the spans that have not ended, by the path of their execution.
	open execpath.Tree[*openSpans]
	// byID has the paths of the spans of trace.start.
	byID map[tracecontext.Span]execpath.Path
}

// openSpans are the open spans of one path. A map's item and the only node in it have the
// same path.
type openSpans struct {
	branch, node *span
	// opened are the spans of trace.start in the sequence of nodes, innermost last.
	opened []*span
}

func newTracedRun(t *Tracer, e flow.Event) *tracedRun {
	r := &tracedRun{tracer: t, trace: tracecontext.TraceOf(e.RunID), byID: map[tracecontext.Span]execpath.Path{}}
	// The sequence number distinguishes the root spans of a run and its resumptions.
	r.root = &span{trace: r.trace, id: tracecontext.SpanOf("", int(e.Seq)), name: "run", kind: kindInternal, start: e.Time}
	r.root.set("tea.run.id", e.RunID)
	return r
}

// at returns the open spans of a path; change them with [tracedRun.update].
func (r *tracedRun) at(path execpath.Path) openSpans {
	if o, ok := r.open.Get(path); ok {
		return *o
	}
	return openSpans{}
}

// update changes the open spans of a path.
func (r *tracedRun) update(path execpath.Path, change func(*openSpans)) {
	o, ok := r.open.Get(path)
	if !ok {
		o = &openSpans{}
		r.open.Set(path, o)
	}
	change(o)
	if o.branch == nil && o.node == nil && len(o.opened) == 0 {
		r.open.Delete(path)
	}
}

// child begins a span below the innermost span that contains a path.
func (r *tracedRun) child(path execpath.Path, name string, id tracecontext.Span, at time.Time) *span {
	return &span{trace: r.trace, id: id, parent: r.enclosing(path).id, name: name, kind: kindInternal, start: at}
}

// enclosing returns the innermost open span that contains the execution at a path: the last
// span of trace.start in the same sequence, else the branch or node that contains the
// sequence, and so on outwards.
func (r *tracedRun) enclosing(path execpath.Path) *span {
	for p := path; ; p = p.Outer() {
		o := r.at(p)
		switch {
		case len(o.opened) > 0:
			return o.opened[len(o.opened)-1]
		case o.node != nil && p != path:
			return o.node.latest()
		case o.branch != nil:
			return o.branch.latest()
		case p == "":
			return r.root
		}
	}
}

// belongsTo returns the span for an event at a path: the node's, or the enclosing one.
func (r *tracedRun) belongsTo(path execpath.Path) *span {
	if s := r.at(path).node; s != nil {
		return s.latest()
	}
	return r.enclosing(path)
}

// finish ends a span and exports it.
func (r *tracedRun) finish(s *span, at time.Time) {
	s.end = at
	if at.Before(s.start) {
		s.end = s.start // a retry that was canceled while it waited
	}
	if len(s.tokens) > 0 {
		s.set("gen_ai.output.messages", messages("assistant", clip(string(s.tokens))))
	}
	r.tracer.export(s)
}

// abandon ends the spans that are still open below a path: the run or the branch continued
// without them.
func (r *tracedRun) abandon(path execpath.Path, at time.Time) {
	for _, o := range r.open.Cut(path) {
		r.endUnended(o, at)
		for _, s := range []*span{o.node, o.branch} {
			if s != nil {
				r.unfinished(s, at)
			}
		}
	}
	if o, ok := r.open.Get(path); ok && len(o.opened) > 0 {
		r.update(path, func(o *openSpans) { r.endUnended(o, at) })
	}
}

// endUnended ends the spans of trace.start that trace.end did not end.
func (r *tracedRun) endUnended(o *openSpans, at time.Time) {
	for _, s := range slices.Backward(o.opened) {
		delete(r.byID, s.id)
		r.unfinished(s, at)
	}
	o.opened = nil
}

func (r *tracedRun) unfinished(s *span, at time.Time) {
	if s.again != nil {
		r.unfinished(s.again, at)
	}
	s.set("tea.unfinished", true)
	r.finish(s, at)
}

// mark executes trace.start, trace.log and trace.end.
func (r *tracedRun) mark(e flow.Event, m traceactions.Mark, fields map[string]any) {
	id, ok := tracecontext.ParseSpan(m.SpanID)
	frame, known := r.byID[id]
	switch m.Kind {
	case traceactions.Start:
		if !ok || known {
			return
		}
		s := r.child(pathOf(e), m.Name, id, e.Time)
		for k, v := range m.Attributes {
			s.set(k, v)
		}
		frame := pathOf(e).Frame()
		r.byID[id] = frame
		r.update(frame, func(o *openSpans) { o.opened = append(o.opened, s) })
	case traceactions.Log:
		s := r.belongsTo(pathOf(e))
		if known {
			s = openedAs(r.at(frame), id)
		}
		s.note(e.Time, e.Text("message"), fields)
	case traceactions.End:
		if !known {
			return
		}
		s := openedAs(r.at(frame), id)
		delete(r.byID, id)
		r.update(frame, func(o *openSpans) {
			o.opened = slices.DeleteFunc(o.opened, func(other *span) bool { return other == s })
		})
		if m.Failed {
			s.fail(e.Time, "error", m.Error)
		}
		r.finish(s, e.Time)
	}
}

// openedAs returns a span of trace.start by its id.
func openedAs(o openSpans, id tracecontext.Span) *span {
	return o.opened[slices.IndexFunc(o.opened, func(s *span) bool { return s.id == id })]
}

// pathOf returns the path of the execution that an event describes.
func pathOf(e flow.Event) execpath.Path { return execpath.Path(e.Path) }

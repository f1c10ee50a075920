package trace

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/internal/builtin/traceactions"
	"github.com/the-edge-agent/tea/host/internal/tracecontext"
)

// tracedRun is the open spans of one run. Its tracer's lock guards it.
type tracedRun struct {
	tracer *Tracer
	trace  tracecontext.Trace
	root   *span
	// nodes are the executions of nodes, by path.
	nodes map[string]*span
	// branches are the branches of fan-outs and maps, by path: the only node
	// of a map's branch has the same path as its branch.
	branches map[string]*span
	// opened are what trace.start opened, by the path of the sequence of
	// nodes it was called in; the innermost is the last.
	opened map[string][]*span
}

func newTracedRun(t *Tracer, e host.Event) *tracedRun {
	r := &tracedRun{
		tracer: t, trace: tracecontext.TraceOf(e.RunID),
		nodes: map[string]*span{}, branches: map[string]*span{}, opened: map[string][]*span{},
	}
	// The sequence number tells a run's root from that of its resumption.
	r.root = &span{trace: r.trace, id: tracecontext.SpanOf("", int(e.Seq)), name: "run", kind: kindInternal, start: e.Time}
	r.root.set("tea.run.id", e.RunID)
	return r
}

// child begins a span under the one that stands around a path.
func (r *tracedRun) child(path, name string, id tracecontext.Span, at time.Time) *span {
	return &span{trace: r.trace, id: id, parent: r.around(path).id, name: name, kind: kindInternal, start: at}
}

// around finds the innermost open span outside the execution of a path: what
// trace.start opened in the same sequence, else the branch or node that the
// sequence stands in, and so on outwards.
func (r *tracedRun) around(path string) *span {
	for p := path; ; p = tracecontext.Outer(p) {
		if s := last(r.opened[p]); s != nil {
			return s
		}
		if s := r.nodes[p]; s != nil && p != path {
			return s.latest()
		}
		if s := r.branches[p]; s != nil {
			return s.latest()
		}
		if p == "" {
			return r.root
		}
	}
}

// at finds the span that something at a path belongs to: the node's own, or
// what is around.
func (r *tracedRun) at(path string) *span {
	if s := r.nodes[path]; s != nil {
		return s.latest()
	}
	return r.around(path)
}

func last(list []*span) *span {
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

// finish ends a span and exports it.
func (r *tracedRun) finish(s *span, at time.Time) {
	s.end = at
	if at.Before(s.start) {
		s.end = s.start // a repetition that was canceled while it waited
	}
	if len(s.said) > 0 {
		s.set("gen_ai.output.messages", messages("assistant", clip(string(s.said))))
	}
	r.tracer.export(s)
}

// abandon ends what is still open below a path: the run or the branch went
// on without it.
func (r *tracedRun) abandon(path string, at time.Time) {
	for _, open := range []map[string]*span{r.nodes, r.branches} {
		for _, p := range innermostFirst(open) {
			if tracecontext.Below(p, path) {
				r.unfinished(open[p], at)
				delete(open, p)
			}
		}
	}
	for _, frame := range innermostFirst(r.opened) {
		if frame != path && !tracecontext.Below(frame, path) {
			continue
		}
		for _, s := range slices.Backward(r.opened[frame]) {
			r.unfinished(s, at)
		}
		delete(r.opened, frame)
	}
}

func (r *tracedRun) unfinished(s *span, at time.Time) {
	if s.again != nil {
		r.unfinished(s.again, at)
	}
	s.set("tea.unfinished", true)
	r.finish(s, at)
}

func innermostFirst[V any](open map[string]V) []string {
	return slices.SortedFunc(maps.Keys(open), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
}

// mark does what trace.start, trace.log and trace.end ask for.
func (r *tracedRun) mark(e host.Event, m traceactions.Mark, fields map[string]any) {
	switch m.Kind {
	case traceactions.Start:
		id, ok := tracecontext.ParseSpan(m.SpanID)
		if !ok {
			return
		}
		s := r.child(e.Path, m.Name, id, e.Time)
		for k, v := range m.Attributes {
			s.set(k, v)
		}
		frame := tracecontext.Frame(e.Path)
		r.opened[frame] = append(r.opened[frame], s)
	case traceactions.Log:
		s := r.at(e.Path)
		if frame, i, ok := r.find(m.SpanID); ok {
			s = r.opened[frame][i]
		}
		s.note(e.Time, text(e.Fields, "message"), fields)
	case traceactions.End:
		frame, i, ok := r.find(m.SpanID)
		if !ok {
			return
		}
		s := r.opened[frame][i]
		r.opened[frame] = slices.Delete(r.opened[frame], i, i+1)
		if m.Failed {
			s.fail(e.Time, "error", m.Error)
		}
		r.finish(s, e.Time)
	}
}

// find looks for a span that trace.start opened.
func (r *tracedRun) find(id string) (frame string, i int, ok bool) {
	for frame, list := range r.opened {
		for i, s := range list {
			if s.id.String() == id {
				return frame, i, true
			}
		}
	}
	return "", 0, false
}

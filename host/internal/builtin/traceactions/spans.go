package traceactions

import (
	"slices"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/host/internal/tracecontext"
)

// span is one that was started and not ended.
type span struct {
	id      string
	frame   string
	started time.Time
}

// mostRuns bounds the runs whose open spans are remembered, since nobody says
// when a run that never ends its spans is over.
const mostRuns = 1000

// spans are the open spans of each run. It is safe for concurrent use.
type spans struct {
	mu   sync.Mutex
	open map[string][]span
	runs []string // the keys of open, the oldest first
}

func newSpans() *spans { return &spans{open: map[string][]span{}} }

func (s *spans) start(run string, opened span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.open[run]; !known {
		s.runs = append(s.runs, run)
		if len(s.runs) > mostRuns {
			delete(s.open, s.runs[0])
			s.runs = s.runs[1:]
		}
	}
	s.open[run] = append(s.open[run], opened)
}

// current is the span that a node's entry belongs to: that with the id or,
// without one, the innermost of the node's sequence or one around it.
func (s *spans) current(run, node, id string) (span, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(run, node, id)
}

// end is [spans.current] and forgets the span.
func (s *spans) end(run, node, id string) (span, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.find(run, node, id)
	if !ok {
		return found, false
	}
	rest := slices.DeleteFunc(s.open[run], func(o span) bool { return o.id == found.id })
	s.open[run] = rest
	if len(rest) == 0 {
		delete(s.open, run)
		s.runs = slices.DeleteFunc(s.runs, func(r string) bool { return r == run })
	}
	return found, true
}

func (s *spans) find(run, node, id string) (span, bool) {
	frame := tracecontext.Frame(node)
	var best span
	found := false
	for _, o := range s.open[run] {
		if id != "" {
			if o.id == id {
				return o, true
			}
			continue
		}
		inside := o.frame == frame || tracecontext.Below(frame, o.frame)
		// The last of the innermost: spans are in the order of their start.
		if inside && len(o.frame) >= len(best.frame) {
			best, found = o, true
		}
	}
	return best, found
}

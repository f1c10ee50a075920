package traceactions

import (
	"slices"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/internal/execpath"
)

// span is an open span.
type span struct {
	id      string
	frame   execpath.Path
	started time.Time
}

// mostRuns bounds the runs with open spans: a run may end without ending its
// spans.
const mostRuns = 1000

// spans are the open spans of each run. It is safe for concurrent use.
type spans struct {
	mu   sync.Mutex
	open map[string]*runSpans
	runs []string // the keys of open, the oldest first
}

// runSpans are the open spans of one run.
type runSpans struct {
	byFrame execpath.Tree[[]span] // in the order of their start
	byID    map[string]span
}

func newSpans() *spans { return &spans{open: map[string]*runSpans{}} }

func (s *spans) start(run string, opened span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.open[run]
	if r == nil {
		r = &runSpans{byID: map[string]span{}}
		s.open[run] = r
		s.runs = append(s.runs, run)
		if len(s.runs) > mostRuns {
			delete(s.open, s.runs[0])
			s.runs = s.runs[1:]
		}
	}
	list, _ := r.byFrame.Get(opened.frame)
	r.byFrame.Set(opened.frame, append(list, opened))
	r.byID[opened.id] = opened
}

// current returns the span with the id or, without an id, the innermost span of
// the node's sequence or an enclosing sequence.
func (s *spans) current(run, node, id string) (span, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(run, node, id)
}

// end is [spans.current], and removes the span.
func (s *spans) end(run, node, id string) (span, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.find(run, node, id)
	if !ok {
		return found, false
	}
	r := s.open[run]
	list, _ := r.byFrame.Get(found.frame)
	list = slices.DeleteFunc(list, func(o span) bool { return o.id == found.id })
	if len(list) > 0 {
		r.byFrame.Set(found.frame, list)
	} else {
		r.byFrame.Delete(found.frame)
	}
	delete(r.byID, found.id)
	if len(r.byID) == 0 {
		delete(s.open, run)
		s.runs = slices.DeleteFunc(s.runs, func(r string) bool { return r == run })
	}
	return found, true
}

func (s *spans) find(run, node, id string) (span, bool) {
	r := s.open[run]
	if r == nil {
		return span{}, false
	}
	if id != "" {
		found, ok := r.byID[id]
		return found, ok
	}
	list, ok := r.byFrame.Nearest(execpath.Path(node).Frame())
	if !ok {
		return span{}, false
	}
	return list[len(list)-1], true
}

package server

import (
	"sync"

	"github.com/the-edge-agent/tea/host/flow"
)

// maxRecent is how many events of a run a hub keeps. The log on disk lags behind by
// fewer.
const maxRecent = 4096

// hub holds the recent events of a running run. It is safe for concurrent use. A
// reader that falls behind continues with the log on disk.
type hub struct {
	mu     sync.Mutex
	recent []flow.Event
	closed bool
	// more is closed at the next event; nil if nobody waits.
	more chan struct{}
}

// put adds an event.
func (h *hub) put(e flow.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.recent) >= maxRecent {
		h.recent = append(h.recent[:0], h.recent[maxRecent/2:]...)
	}
	h.recent = append(h.recent, e)
	h.wake()
}

// close ends the stream of events.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.wake()
}

func (h *hub) wake() {
	if h.more != nil {
		close(h.more)
		h.more = nil
	}
}

// after returns the events after a number, and the number of the first event in the
// hub. If there are none yet, more is closed as soon as there are; it is nil if none
// can follow.
func (h *hub) after(seq int64) (events []flow.Event, first int64, more <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.recent) > 0 {
		first = h.recent[0].Seq
	}
	for i, e := range h.recent {
		if e.Seq > seq {
			return append(events, h.recent[i:]...), first, nil
		}
	}
	if h.closed {
		return nil, first, nil
	}
	if h.more == nil {
		h.more = make(chan struct{})
	}
	return nil, first, h.more
}

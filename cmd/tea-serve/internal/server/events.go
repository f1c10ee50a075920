package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
)

const (
	// heartbeat is the interval of keep-alive messages to clients that wait for events.
	heartbeat = 15 * time.Second
	// writeTimeout is how long a client has to accept data.
	writeTimeout = 30 * time.Second
)

// getEvents streams the events of a run as server-sent events, from the event after
// Last-Event-ID, until the run ends or waits.
func (s *server) getEvents(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	last, err := lastEvent(r)
	if err != nil {
		return err
	}
	_, _, err = s.entry(id)
	s.mu.Lock()
	known := s.led.state.items[id] != nil || s.led.state.drops[id] != nil
	s.mu.Unlock()
	if err != nil && (!errors.Is(err, errNoRun) || !known) {
		return err
	}
	e := &eventStream{s: s, w: w, control: http.NewResponseController(w), id: id, last: last}
	err = e.run(r.Context())
	if err == nil && !e.begun {
		w.WriteHeader(http.StatusNoContent) // nothing follows: the client need not reconnect
	}
	if e.begun {
		return nil // the client is gone, or sees the end
	}
	return err
}

// lastEvent returns the number of the event after which a stream begins.
func lastEvent(r *http.Request) (int64, error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("after")
	}
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, badRequest(fmt.Errorf("Last-Event-ID: expected the number of an event, got %.40q", text))
	}
	return n, nil
}

// eventStream sends the events of a run to a client.
type eventStream struct {
	s       *server
	w       http.ResponseWriter
	control *http.ResponseController
	id      string
	last    int64
	begun   bool
	// sent reports whether an event was sent.
	sent bool
	// each returns the data to send for an event; nil sends the event itself.
	each func(line []byte) []byte
}

// errDisconnected reports that the client does not read.
var errDisconnected = errors.New("the client has disconnected")

func (e *eventStream) run(ctx context.Context) error {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		h, next, answered := e.source()
		if h == nil {
			last := e.last
			if err := e.stored(0); err != nil {
				return err
			}
			if next == nil {
				if e.last > last {
					continue // the run may have been answered meanwhile
				}
				if next = answered; next == nil {
					return nil
				}
			}
		}
		more := next
		if h != nil {
			events, first, wait := h.after(e.last)
			if first > e.last+1 { // older events are on disk
				if err := e.stored(first); err != nil {
					return err
				}
			}
			if err := e.sendAll(events); err != nil {
				return err
			}
			if len(events) > 0 {
				if err := e.flush(); err != nil {
					return err
				}
				continue
			}
			if more = wait; more == nil {
				if more = e.after(h); more == nil {
					return nil
				}
			}
		} else if err := e.start(); err != nil {
			return err
		}
		if err := e.flush(); err != nil {
			return err
		}
		select {
		case <-more:
		case <-ticker.C:
			e.deadline()
			if _, err := e.w.Write([]byte(":\n\n")); err != nil {
				return errDisconnected
			}
		case <-ctx.Done():
			return errDisconnected
		case <-e.s.runs.Done():
			return errDisconnected
		}
	}
}

// sendAll sends events from the hub.
func (e *eventStream) sendAll(events []flow.Event) error {
	for _, event := range events {
		line, err := event.MarshalJSON()
		if err != nil {
			return err
		}
		if err := e.send(event.Seq, line); err != nil {
			return err
		}
	}
	return nil
}

// source returns the hub of a running run. Otherwise it returns a channel: starts is
// closed when a queued run may have started, answered when a waiting run has been
// answered. Events after the call are not missed, because the events on disk are read
// later.
func (e *eventStream) source() (h *hub, starts, answered <-chan struct{}) {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	if lv := e.s.live[e.id]; lv != nil {
		return lv.hub, nil, nil
	}
	it := e.s.led.state.items[e.id]
	if it == nil || it.Parked != "" || it.Waiting {
		return nil, nil, e.answered(it)
	}
	return nil, it.starts(), nil
}

// answered returns a channel that is closed when a waiting run continues or is
// stopped. It is nil if the run does not wait, or if this request sent the events up
// to the wait; a client that reconnects after them waits, too. The caller holds the
// mutex.
func (e *eventStream) answered(it *item) <-chan struct{} {
	if e.last == 0 || e.sent {
		return nil
	}
	if it == nil {
		runs, err := e.s.openRuns()
		if err != nil {
			return nil
		}
		if entry, err := runs.Entry(e.id); err != nil || entry.Status != flow.Waiting {
			return nil
		}
	} else if !it.Waiting {
		return nil
	}
	ch := e.s.answers[e.id]
	if ch == nil {
		ch = make(chan struct{})
		e.s.answers[e.id] = ch
	}
	return ch
}

// wake notifies the requests that wait for a waiting run. The caller holds the mutex.
func (s *server) wake(id string) {
	if ch := s.answers[id]; ch != nil {
		close(ch)
		delete(s.answers, id)
	}
}

// after returns a channel that is closed when a run whose hub was closed has
// changed; nil if it has ended.
func (e *eventStream) after(h *hub) <-chan struct{} {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	it := e.s.led.state.items[e.id]
	if lv := e.s.live[e.id]; lv != nil && lv.hub == h && it != nil { // its end is being recorded
		return it.starts()
	}
	if it == nil || it.Parked != "" || it.Waiting {
		return nil
	}
	return it.starts()
}

// stored sends the events on disk with numbers below before; 0 is no limit.
func (e *eventStream) stored(before int64) error {
	return e.s.storedEvents(e.id, e.last, before, e.send)
}

// storedEvents calls fn with the events of a run on disk whose numbers are above after
// and below before; 0 is no limit.
func (s *server) storedEvents(id string, after, before int64, fn func(seq int64, line []byte) error) error {
	runs, err := s.openRuns()
	if err != nil {
		return err
	}
	errEnough := errors.New("enough")
	err = runs.Events(id, after, func(seq int64, line []byte) error {
		if before > 0 && seq >= before {
			return errEnough
		}
		return fn(seq, line)
	})
	if errors.Is(err, errEnough) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// start sends the header.
func (e *eventStream) start() error {
	if e.begun {
		return nil
	}
	e.begun = true
	e.deadline()
	header := e.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
	e.w.WriteHeader(http.StatusOK)
	return nil
}

func (e *eventStream) deadline() { _ = e.control.SetWriteDeadline(time.Now().Add(writeTimeout)) } // HTTP/1 supports it

// send sends an event.
func (e *eventStream) send(seq int64, line []byte) error {
	if seq <= e.last {
		return nil
	}
	if err := e.start(); err != nil {
		return err
	}
	text := fmt.Appendf(nil, "id: %d\ndata: %s\n\n", seq, line)
	if e.each != nil {
		text = e.each(line)
	}
	if _, err := e.w.Write(text); err != nil {
		return errDisconnected
	}
	e.last, e.sent = seq, true
	return nil
}

func (e *eventStream) flush() error {
	if !e.begun {
		if err := e.start(); err != nil {
			return err
		}
	}
	e.deadline()
	if err := e.control.Flush(); err != nil {
		return errDisconnected
	}
	return nil
}

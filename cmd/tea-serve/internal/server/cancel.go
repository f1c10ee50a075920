package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
)

// postCancel stops a run.
func (s *server) postCancel(w http.ResponseWriter, r *http.Request) error {
	status, err := s.cancel(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, map[string]any{"id": r.PathValue("id"), "status": status})
}

// cancel stops a run that is running, queued, parked or waiting, and returns its status.
func (s *server) cancel(ctx context.Context, id string) (string, error) {
	s.mu.Lock()
	ran := false
	for lv := s.live[id]; lv != nil; lv = s.live[id] {
		ran, lv.canceled = true, true
		lv.cancel(errCanceled)
		settled := lv.it.starts()
		s.mu.Unlock()
		select {
		case <-settled:
		case <-ctx.Done(): // the client is gone
			return "", ctx.Err()
		}
		s.mu.Lock()
	}
	b, err := s.stopIdle(id, errCanceled) // it may wait by now
	s.mu.Unlock()
	if err == nil {
		err = b.wait()
	}
	if conflict := (*statusError)(nil); ran && errors.As(err, &conflict) {
		return s.statusOf(id), nil // it has ended
	}
	if err != nil {
		return "", s.asDropped(id, err)
	}
	return string(flow.Stopped), nil
}

// stopIdle stops a run that is not running, and starts its follow-up runs. The
// caller holds the mutex, and waits for the batch after releasing it.
func (s *server) stopIdle(id string, cause *stopped) (*batch, error) {
	it := s.led.state.items[id]
	begun, err := s.stopBegun(id, it, cause)
	if err != nil {
		return nil, err
	}
	if it == nil {
		it = &item{ID: id, Workflow: begun, At: time.Now()}
	}
	ln := s.line(it.Workflow)
	ln.ready = slices.DeleteFunc(ln.ready, func(other *item) bool { return other == it })
	s.removeCount(it)
	end := &entry{End: id}
	if begun == "" {
		end.Drop = s.drop(it)
	} else {
		ln.addEnded(id, flow.Stopped, time.Now())
		if s.led.state.over[id] == nil {
			end.Over = &overRun{ID: id, Trigger: it.Trigger, At: it.At, Attempts: it.Attempts}
		}
	}
	entries := []*entry{end}
	res := &flow.Result{RunID: id, Status: flow.Stopped, Err: cause}
	if v := s.catalog.use(it.Workflow); v != nil {
		s.follow(&live{it: it, v: v}, res, &entries)
		v.uses.Done()
	}
	b, err := s.led.add(true, entries...)
	if err != nil {
		return nil, err
	}
	s.setWaiting(it, false)
	s.startFollowers()
	s.dispatch()
	it.finish(res, nil)
	s.wake(id)
	return b, nil
}

// stopBegun stops a run that has a checkpoint, and returns the name of its
// workflow; "" for a run without one. The caller holds the mutex.
func (s *server) stopBegun(id string, it *item, cause *stopped) (workflow string, err error) {
	runs, entry, err := s.entry(id)
	if it != nil && (errors.Is(err, errNoRun) || err != nil && it.Parked != "") { // a damaged checkpoint stays
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if it == nil && entry.Status != flow.Waiting || entry.Status == flow.Done {
		return "", &statusError{http.StatusConflict, fmt.Errorf("the run cannot be stopped: its status is %s", entry.Status)}
	}
	return entry.Workflow, runs.Stop(id, cause.Error())
}

// startFollowers queues the runs that follow an ended run. The caller holds the
// mutex.
func (s *server) startFollowers() {
	for _, next := range s.followers {
		s.count(next)
		s.enqueue(next)
	}
	s.followers = nil
}

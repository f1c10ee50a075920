package server

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
)

// countsWaiting reports whether runs that wait for an answer count as running.
func countsWaiting(c *host.ServeConfig) bool { return c.CountWaiting == nil || *c.CountWaiting }

// usedSlots returns how many of the max_running slots are taken.
func (ln *line) usedSlots(c *host.ServeConfig) int {
	if countsWaiting(c) {
		return len(ln.running) + len(ln.waiting)
	}
	return len(ln.running)
}

// fresh returns the number of queued runs that do not continue a waiting run.
func (ln *line) fresh() (n int) {
	for _, it := range ln.ready {
		if !ln.waiting[it.ID] {
			n++
		}
	}
	return n
}

// next returns the position of the queued run that can start, or -1 if there is none. A
// run that waited for an answer keeps its slot.
func (ln *line) next(c *host.ServeConfig) int {
	switch most := maxRunning(c); {
	case len(ln.running) >= most:
		return -1
	case ln.usedSlots(c) >= most:
		return slices.IndexFunc(ln.ready, func(it *item) bool { return ln.waiting[it.ID] })
	case c.Order == "lifo":
		return len(ln.ready) - 1
	}
	return 0
}

// setWaiting records whether a run waits for an answer. The caller holds the mutex.
func (s *server) setWaiting(it *item, waiting bool) {
	if ln := s.line(it.Workflow); waiting {
		ln.waiting[it.ID] = true
		s.lookAt(it.ID)
	} else {
		delete(ln.waiting, it.ID)
	}
}

// replaceWaiting stops the run that has waited longest and is not queued to continue.
// It reports whether there was one. The caller holds the mutex.
func (s *server) replaceWaiting(ln *line) bool {
	for _, id := range slices.Sorted(maps.Keys(ln.waiting)) {
		if slices.ContainsFunc(ln.ready, func(it *item) bool { return it.ID == id }) {
			continue
		}
		delete(ln.waiting, id)
		s.background.Go(func() {
			s.mu.Lock()
			b, err := s.stopIdle(id, errReplaced)
			s.mu.Unlock()
			if err == nil {
				err = b.wait()
			}
			if err != nil && !errors.Is(err, errLedgerClosed) {
				s.svc.Log.Warn("run "+id+" could not be replaced", "run", id, "error", s.svc.Hide(err.Error()))
			}
		})
		return true
	}
	return false
}

// refreshInterval is how often the server checks whether runs still wait.
const refreshInterval = 15 * time.Second

// refresh removes waiting runs that another process has continued or removed, if they
// keep other runs from starting.
func (s *server) refresh() {
	var ids []string
	s.mu.Lock()
	for name, ln := range s.lines {
		if v := s.catalog.use(name); v != nil {
			if c := v.serving.Config(); countsWaiting(c) && ln.usedSlots(c) >= maxRunning(c) {
				ids = slices.AppendSeq(ids, maps.Keys(ln.waiting))
			}
			v.uses.Done()
		}
	}
	s.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	runs, err := s.openRuns()
	if err != nil {
		return
	}
	for _, id := range ids {
		entry, err := runs.Entry(id)
		if err == nil && entry.Status == flow.Waiting || err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		s.mu.Lock()
		for _, ln := range s.lines {
			delete(ln.waiting, id)
		}
		s.dispatch()
		s.mu.Unlock()
	}
}

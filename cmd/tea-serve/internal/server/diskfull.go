package server

import (
	"errors"
	"slices"
	"syscall"
	"time"
)

const (
	// diskFullRetry is the first wait before a run is retried while the disk is full, and
	// maxDiskFullRetry the longest.
	diskFullRetry    = time.Second
	maxDiskFullRetry = 10 * time.Second
)

// full reports whether an error is caused by a full disk, and not by the run.
func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// diskFull is the state of a server whose disk is full: runs wait, and one at a time
// is tried. The mutex of the server guards its fields.
type diskFull struct {
	// err is the error of the last run that was tried; nil while there is room.
	err  error
	wait time.Duration
	// next is when another run can be tried.
	next time.Time
}

// waits reports whether no run can be tried now.
func (n *diskFull) waits() bool { return n.err != nil && time.Now().Before(n.next) }

// requeueAfterFullDisk returns a run to the head of its queue because the disk is full. The
// caller holds the mutex.
func (s *server) requeueAfterFullDisk(lv *live, err error, entries *[]*entry) {
	it := lv.it
	it.Attempts, it.NotBefore = lv.attempts, time.Time{}
	*entries = append(*entries, &entry{Try: new(it.progress)})
	ln, at := s.line(it.Workflow), 0
	if lv.v.serving.Config().Order == "lifo" {
		at = len(ln.ready)
	}
	ln.ready = slices.Insert(ln.ready, at, it)
	s.count(it)
	if s.diskFull.err != nil && s.probe.Load() != it {
		return // it began before the disk was known to be full
	}
	if s.diskFull.err == nil {
		s.svc.Log.Error("the disk is full: runs wait until space is freed", "error", s.svc.Hide(err.Error()))
	}
	wait := min(max(2*s.diskFull.wait, diskFullRetry), maxDiskFullRetry)
	s.diskFull = diskFull{withoutPath(err), wait, time.Now().Add(wait)}
	s.probe.Store(nil)
	time.AfterFunc(wait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.dispatch(); s.probe.Load() == nil {
			s.diskFull = diskFull{} // no run needs it any longer
		}
	})
}

// probing records that a run starts while the disk is full. The caller holds the
// mutex.
func (s *server) probing(it *item) {
	if s.diskFull.err != nil {
		s.diskFull.next = time.Now().Add(maxDiskFullRetry)
		s.probe.Store(it)
	}
}

// begun lets the other runs start if the run is the one that was tried while the
// disk was full. The caller holds the mutex.
func (s *server) begun(it *item) {
	if s.probe.CompareAndSwap(it, nil) {
		s.diskFull = diskFull{}
		s.svc.Log.Info("the disk has free space again")
		s.dispatch()
	}
}

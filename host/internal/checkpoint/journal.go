package checkpoint

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
)

// spillSize is the size of the queue from which it is written to the file.
const spillSize = 4 << 20

// Journal is a run that this process owns, open for appending. Its methods are
// safe for concurrent use. It is returned by [Store.Create] and [Store.Open], and
// ends with Close or Discard.
type Journal struct {
	header     Header
	path       string
	durability flow.Durability

	// io is locked while the file is written; it is locked before mu.
	io sync.Mutex
	w  *writer // nil until the first records are written
	// durable reports whether the file must remain: a caller relies on it.
	durable bool
	// written is the last record in the file.
	written uint64

	mu       sync.Mutex // guards the following fields
	queue    *batch
	seq      uint64 // the last record queued or written
	size     int64  // of the file, with the queue
	closed   bool
	flushErr error // why the background writer cannot write

	background *flusher // async only
}

// batch is a sequence of frames that are written to the file at once. done and
// err are guarded by the journal's io, the rest by mu while it is the queue.
type batch struct {
	frames []byte
	last   uint64 // the last record in it
	done   bool
	err    error
	ready  chan struct{} // closed when done; err can be read then
}

func newBatch() *batch { return &batch{ready: make(chan struct{})} }

// end sets the outcome. The caller holds io.
func (b *batch) end(err error) { b.done, b.err = true, err }

// newJournal returns the journal of a run. It owns w, which is nil if there is no
// file yet. last is the number of the last record in the file.
func newJournal(h Header, path string, d flow.Durability, w *writer, last uint64) *Journal {
	j := &Journal{header: h, path: path, durability: d, w: w, durable: w != nil, written: last, queue: newBatch(), seq: last}
	if w != nil {
		j.size = w.size
	}
	if d == flow.DurabilityAsync {
		j.background = startFlusher(j)
	}
	return j
}

// RunID returns the id of the run.
func (j *Journal) RunID() string { return j.header.RunID }

// Header returns the journal's header.
func (j *Journal) Header() Header { return j.header }

// Path returns the path of the run's file, which may not exist yet; empty with
// durability off.
func (j *Journal) Path() string { return j.path }

// Size returns the size of the file in bytes, including queued records.
func (j *Journal) Size() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.size
}

// Seq returns the number of the last appended record; 0 before the first.
func (j *Journal) Seq() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.seq
}

// Append adds consecutive records in this order and assigns their Seq. The
// records' bodies can be reused after it returns.
//
// With durability sync, the records are on disk when it returns; concurrent calls
// share the sync. With async, the first call creates the file, as with sync; the
// records of later calls are written soon, and the error is the error of an
// earlier attempt. With exit, the records wait for Sync.
//
// After an error the journal contains none of the records, and the same call can
// be retried, for example after freeing space (errors.Is with syscall.ENOSPC);
// a [*PoisonedError] is final.
func (j *Journal) Append(records ...Record) error {
	if j.durability == flow.DurabilityOff || len(records) == 0 {
		return nil
	}
	for _, r := range records {
		if size := len(r.Kind) + len(r.Path) + len(r.Body); size > maxRecord {
			return fmt.Errorf("append to checkpoint %s: a record of %d bytes is larger than %d", j.path, size, maxRecord)
		}
	}
	if j.durability != flow.DurabilitySync {
		if err := j.makeRoom(); err != nil {
			return err
		}
	}
	b, leads, first, err := j.enqueue(records)
	if err != nil {
		return err
	}
	switch {
	case j.durability == flow.DurabilitySync, j.durability == flow.DurabilityAsync && first:
		return j.commit(b, leads)
	case j.durability == flow.DurabilityAsync:
		j.background.wake()
	}
	return nil
}

// enqueue adds the records' frames to the queue. leads reports whether they are
// the first in the batch, first whether they are the first in the journal.
func (j *Journal) enqueue(records []Record) (b *batch, leads, first bool, err error) {
	now := time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, false, false, fmt.Errorf("append to checkpoint %s: %w", j.path, os.ErrClosed)
	}
	b, first = j.queue, j.seq == 0
	before := len(b.frames)
	leads = before == 0
	for _, r := range records {
		j.seq++
		r.Seq = j.seq
		if r.Time.IsZero() {
			r.Time = now
		}
		b.frames = appendFrame(b.frames, func(p []byte) []byte { return appendRecord(p, r) })
	}
	b.last = j.seq
	j.size += int64(len(b.frames) - before)
	return b, leads, first, nil
}

// Sync makes all appended records durable. After an error, records of durability
// exit and async stay queued and Sync can be retried; a [*PoisonedError] is
// final.
func (j *Journal) Sync() error {
	if j.durability == flow.DurabilityOff {
		return nil
	}
	j.io.Lock()
	defer j.io.Unlock()
	if j.isClosed() {
		return fmt.Errorf("sync checkpoint %s: %w", j.path, os.ErrClosed)
	}
	return j.flush(true)
}

// Close releases the run for other owners. With async it first writes the queue
// and returns an error if that fails; with exit, records appended after the last
// Sync may be lost. Closing again does nothing.
func (j *Journal) Close() error {
	return j.end(j.durability == flow.DurabilitySync || j.durability == flow.DurabilityAsync)
}

// Discard closes the journal of a run that succeeded and need not be resumed. A
// run with durability exit that never called Sync leaves nothing on disk; any
// other file is completed and kept.
func (j *Journal) Discard() error {
	return j.end(j.Promised())
}

// Promised reports whether the run must stay on disk: a Sync, or an Append that
// is durable by itself, has succeeded, or the run was opened and not created.
func (j *Journal) Promised() bool {
	j.io.Lock()
	defer j.io.Unlock()
	return j.durable
}

func (j *Journal) end(flush bool) error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	j.mu.Unlock()
	if j.background != nil {
		j.background.stop()
	}

	j.io.Lock()
	defer j.io.Unlock()
	var err error
	if flush {
		err = j.flush(true)
	}
	if j.w == nil {
		return err
	}
	if !j.durable {
		// Removed while still locked: no one can have opened it.
		if gone := os.Remove(j.path); gone != nil && err == nil {
			err = fmt.Errorf("discard checkpoint: %w", gone)
		}
	}
	if closing := j.w.f.Close(); closing != nil && err == nil {
		err = fmt.Errorf("close checkpoint: %w", closing)
	}
	return err
}

func (j *Journal) isClosed() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.closed
}

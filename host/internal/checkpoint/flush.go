package checkpoint

import (
	"runtime"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
)

// flushInterval bounds the delay of records with durability async, so that a fast
// run costs a few writes per second instead of one per node.
const flushInterval = 50 * time.Millisecond

// commit returns when b is on disk or has failed. The leading caller writes it;
// callers that arrive during the write share the next one.
func (j *Journal) commit(b *batch, leads bool) error {
	if leads {
		j.io.Lock()
		if !b.done { // it is still the queue
			j.gather()
			_ = j.flush(true) // b has the error
		}
		j.io.Unlock()
	}
	<-b.ready
	return b.err
}

// gather yields to runnable goroutines, so that they append their records and
// share the sync: many of them were waiting for the last write.
func (j *Journal) gather() {
	for before, seq := uint64(0), uint64(1); before != seq; {
		runtime.Gosched()
		before = seq
		j.mu.Lock()
		seq = j.seq
		j.mu.Unlock()
	}
}

// flush writes the queue to the file, and syncs the file if durable is set. The
// caller holds io.
func (j *Journal) flush(durable bool) error {
	j.mu.Lock()
	b := j.queue
	j.queue = newBatch()
	j.mu.Unlock()

	err := j.write(b, durable)
	b.end(err)
	defer close(b.ready)
	switch {
	case err == nil:
		j.taken(b)
	case j.durability == flow.DurabilitySync, j.durability == flow.DurabilityAsync && j.w == nil:
		j.dropQueue(err)
	default:
		j.requeue(b, err)
	}
	return err
}

func (j *Journal) write(b *batch, durable bool) error {
	switch {
	case len(b.frames) == 0 && j.w == nil:
		return nil // a journal without records has no file
	case j.w == nil:
		w, err := createJournalFile(j.path, j.header, b.frames)
		if err != nil {
			return err
		}
		j.w = w
	case len(b.frames) > 0:
		if err := j.w.write(b.frames); err != nil {
			return err
		}
	}
	if !durable {
		return nil
	}
	if err := j.w.sync(); err != nil {
		return err
	}
	j.durable = true
	return nil
}

func (j *Journal) taken(b *batch) {
	j.written = max(j.written, b.last)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.flushErr = nil
	j.size = j.fileSize() + int64(len(j.queue.frames))
}

// dropQueue fails the records that were queued after a failed write: they are
// numbered after records that were not written.
func (j *Journal) dropQueue(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.queue.end(err)
	close(j.queue.ready)
	j.queue = newBatch()
	j.seq, j.size = j.written, j.fileSize()
}

// fileSize returns the size of the file, 0 if there is none. The caller holds io.
func (j *Journal) fileSize() int64 {
	if j.w == nil {
		return 0
	}
	return j.w.size
}

// requeue puts records that could not be written back at the front of the queue.
func (j *Journal) requeue(b *batch, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.durability == flow.DurabilityAsync {
		j.flushErr = err
	}
	j.queue.frames = append(b.frames, j.queue.frames...)
	j.queue.last = max(b.last, j.queue.last)
}

// makeRoom writes a large queue of durability exit or async to the file, and
// returns the error that keeps async from writing.
func (j *Journal) makeRoom() error {
	j.mu.Lock()
	full, stuck := len(j.queue.frames) > spillSize && !j.closed, j.flushErr
	j.mu.Unlock()
	if stuck != nil {
		j.background.wake()
		return stuck
	}
	if !full {
		return nil
	}
	j.io.Lock()
	defer j.io.Unlock()
	return j.flush(j.durability == flow.DurabilityAsync)
}

// flusher writes the queue of a journal in the background.
type flusher struct {
	journal *Journal
	kick    chan struct{}
	quit    chan struct{}
	stopped chan struct{}
}

func startFlusher(j *Journal) *flusher {
	f := &flusher{journal: j, kick: make(chan struct{}, 1), quit: make(chan struct{}), stopped: make(chan struct{})}
	go f.loop()
	return f
}

// wake requests a write.
func (f *flusher) wake() {
	select {
	case f.kick <- struct{}{}:
	default:
	}
}

// stop returns when the flusher has stopped writing. It must be called only once.
func (f *flusher) stop() {
	close(f.quit)
	<-f.stopped
}

func (f *flusher) loop() {
	defer close(f.stopped)
	for {
		select {
		case <-f.kick:
		case <-f.quit:
			return
		}
		select {
		case <-time.After(flushInterval):
		case <-f.quit:
			return
		}
		f.journal.io.Lock()
		_ = f.journal.flush(true) // the next Append or Sync returns the error
		f.journal.io.Unlock()
	}
}

package bucket

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// holder is this device while it holds the lease: the open databaseand the unpublished changes.
type holder struct {
	s       *shared
	l       *local
	engine  *engine.Engine
	pages   *sqlite.Pages
	began   time.Time
	life    context.Context //nolint:containedctx // it ends the background work
	end     context.CancelFunc
	work    sync.WaitGroup
	changed chan struct{} // buffer of one

	parts

	leaseMu sync.Mutex // guards the lease, except for its methods valid and age
	lease   *lease

	publishing sync.Mutex // held by the goroutine that publishes

	mu sync.Mutex // guards the fields below
	// pending are the changed pages that are not published. If compare is set, there may be others.
	pending map[uint32]struct{}
	compare bool
	// commits counts the changes of the database, done the published changes, and written the changes included in the
	// last written head.
	commits, done, written int64
	// failed is the error of the last attempt to publish, which included the
	// changes up to failedUpTo. attempts counts the attempts.
	failed     error
	failedUpTo int64
	attempts   int64
	progress   chan struct{} // closed and replaced after each attempt
	lost       *lostError
	sealed     bool // refuses further writes
	used       time.Time

	// Guarded by shared.mu.
	users  int
	ending bool
	idle   chan struct{} // closed when ending and the last user has left
	closed chan struct{} // closed when everything is closed
}

// begin takes the lease, brings the copy up to date and opens it.
func (s *shared) begin(ctx context.Context) (*holder, error) {
	l := s.local
	g, previous, err := acquire(ctx, s.bucket, l.device, s.o.lease(), s.o.wait())
	if err != nil {
		return nil, err
	}
	t := &holder{
		s: s, l: l, lease: g, began: time.Now(), used: time.Now(), changed: make(chan struct{}, 1), pending: map[uint32]struct{}{}, progress: make(chan struct{}),
		idle: make(chan struct{}), closed: make(chan struct{}),
	}
	t.life, t.end = context.WithCancel(context.Background())
	t.work.Go(t.keepAlive)
	damaged := l.damaged
	t.compare, err = l.prepare(ctx, t.current(), previous)
	if damaged && !l.damaged {
		s.c.Logger.Warn("the state of this device's copy of the memory was damaged; the copy was moved to a folder, because it may have changes that were not uploaded", "folder", l.path(asidePrefix+withDamage))
	}
	if err == nil {
		err = t.open(ctx)
	}
	if err != nil {
		t.release()
		return nil, err
	}
	t.work.Go(t.publisher)
	t.recoverCopies(ctx)
	return t, nil
}

// release closes the parts that a failed begin has opened, and releases the
// lease.
func (t *holder) release() {
	t.end()
	t.work.Wait()
	if t.driver != nil {
		_ = t.driver.Close() // nothing was written
	}
	if t.pages != nil {
		_ = t.pages.Close()
	}
	if t.engine != nil {
		_ = t.engine.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), t.s.c.Timeout)
	defer cancel()
	if err := t.swap(ctx, func(h *head) { h.Holder = "" }, neverDone); err != nil {
		t.s.c.Logger.Warn("the lease of the memory could not be released", "error", err.Error())
	}
}

func neverDone(head) bool { return false }

func (t *holder) swap(ctx context.Context, change func(*head), done func(head) bool) error {
	return t.withLease(func(g *lease) error { return g.swap(ctx, change, done) })
}

// settled returns the head. If the response to its last write was lost, it reads
// the head again: a state that is built on an older head would omit the changes
// that the write published.
func (t *holder) settled(ctx context.Context) (h head, err error) {
	err = t.withLease(func(g *lease) (err error) {
		if g.stale {
			err = g.reread(ctx)
		}
		h = g.current
		return err
	})
	return h, err
}

// withLease calls fn with the lease, and records the progress or the loss of the
// lease. Calls of fn are serialized.
func (t *holder) withLease(fn func(g *lease) error) error {
	t.leaseMu.Lock()
	defer t.leaseMu.Unlock()
	before := t.lease.current.Version
	err := fn(t.lease)
	lost := (*lostError)(nil)
	ended := errors.As(err, &lost)
	t.mu.Lock()
	if t.lease.current.Version > before || ended && lost.published {
		t.done = max(t.done, t.written)
	}
	if ended {
		t.lost = lost
	}
	t.mu.Unlock()
	if ended {
		t.s.retire(t)
	}
	return err
}

func (t *holder) open(ctx context.Context) error {
	l, c := t.l, t.s.c
	h := t.current()
	s := state{Store: h.Store, Term: h.Term, Version: h.Version, Phase: phaseOpen, Acknowledged: !t.s.o.remote(), Marks: l.state.Marks}
	if !s.Acknowledged {
		s.Marks = nil
	}
	if err := l.note(s); err != nil {
		return err
	}
	var err error
	t.engine, err = engine.Open(ctx, engine.Options{Dir: l.dir, Driver: sqlite.Driver{}, LockTimeout: c.Timeout, Warmup: true, Logger: c.Logger})
	if err != nil {
		return err
	}
	if t.pages, err = sqlite.OpenPages(ctx, l.database()); err != nil {
		return err
	}
	t.collect() // the changes of a migration
	t.parts = partsOn(tracked{t.engine, t}, l.dir, t.s.blobs, t.s.clock, c)
	if t.s.o.remote() || t.compare {
		return nil
	}
	// The copy is the published state: later changes have higher numbers.
	snapshot, err := t.pages.Snapshot(ctx)
	if err != nil {
		return err
	}
	s.Marks, err = marks(ctx, snapshot)
	if err = errors.Join(err, snapshot.End()); err != nil {
		return err
	}
	return l.note(s)
}

// tracked is the holder's database, whose writes are published.
type tracked struct {
	*engine.Engine
	t *holder
}

// Write runs fn in a transaction. It returns when the transaction is acknowledged
// according to the settings.
func (e tracked) Write(ctx context.Context, fn func(ctx context.Context, tx store.Tx) error) error {
	t := e.t
	var at int64
	err := e.Engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := t.writable(); err != nil {
			return err
		}
		if err := fn(ctx, tx); err != nil {
			return err
		}
		tx.AfterCommit(func() { at = t.collect() })
		return nil
	})
	if err != nil {
		return err
	}
	return t.acknowledge(ctx, at)
}

// writable returns the error of a write after the lease has ended.
func (t *holder) writable() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.lost != nil:
		return (&lostError{holder: t.lost.holder}).typed()
	case t.sealed:
		return errClosed()
	}
	return nil
}

// collect adds the pages that changed since its last call to pending, and returns
// the number of the last change. It is called between two writes.
func (t *holder) collect() int64 {
	pages, complete, err := t.pages.Changed()
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil || !complete {
		t.compare = true
	}
	for _, n := range pages {
		t.pending[n] = struct{}{}
	}
	if len(pages) > 0 || t.compare {
		t.commits++
	}
	return t.commits
}

// seen waits until the state that a call has read is acknowledged.
func (t *holder) seen(ctx context.Context) error {
	t.mu.Lock()
	at := t.commits
	t.mu.Unlock()
	return t.acknowledge(ctx, at)
}

// acknowledge returns when a change is as durable as the settings require.
func (t *holder) acknowledge(ctx context.Context, at int64) error {
	select {
	case t.changed <- struct{}{}:
	default: // already signaled
	}
	if !t.s.o.remote() {
		return t.verify(ctx)
	}
	t.mu.Lock()
	first := t.attempts
	for {
		switch {
		case t.done >= at:
			t.mu.Unlock()
			return t.verify(ctx) // verifies the lease even if nothing was written
		case t.lost != nil:
			lost := *t.lost
			t.mu.Unlock()
			return lost.typed()
		case t.attempts > first && t.failed != nil && t.failedUpTo >= at:
			err := t.failed
			t.mu.Unlock()
			return err
		}
		progress := t.progress
		t.mu.Unlock()
		select {
		case <-progress:
		case <-ctx.Done():
			return ctx.Err()
		}
		t.mu.Lock()
	}
}

// verify returns nil if no other device had taken the lease when it was called.
func (t *holder) verify(ctx context.Context) error {
	t.mu.Lock()
	lost := t.lost
	t.used = time.Now()
	t.mu.Unlock()
	if lost != nil {
		return lost.typed()
	}
	if t.lease.valid() {
		return nil
	}
	return t.renew(ctx)
}

// renew writes the head to renew the lease.
func (t *holder) renew(ctx context.Context) error {
	err := t.swap(ctx, func(*head) {}, neverDone)
	if lost := (*lostError)(nil); errors.As(err, &lost) {
		return lost.typed()
	}
	return err
}

// keepAlive renews the lease. It retires the holder when it is unused or another
// device waits.
func (t *holder) keepAlive() {
	every := t.lease.length / 5
	ticker := time.NewTicker(min(every, time.Second))
	defer ticker.Stop()
	for {
		select {
		case <-t.life.Done():
			return
		case <-ticker.C:
		}
		if t.lease.age() >= every {
			ctx, cancel := context.WithTimeout(t.life, t.lease.length)
			err := t.renew(ctx)
			cancel()
			if err != nil && t.life.Err() == nil {
				t.s.c.Logger.Warn("the lease of the memory could not be renewed", "error", err.Error())
			}
		}
		t.mu.Lock()
		unused := time.Since(t.used)
		t.mu.Unlock()
		if unused >= t.s.o.idle() || t.wanted() {
			t.s.retire(t)
		}
	}
}

// minHold is the minimum time that a device keeps the lease while another device waits, since taking the lease costs
// several requests.
const minHold = 300 * time.Millisecond

// wanted reports whether it is time to release the lease for another device.
func (t *holder) wanted() bool {
	t.leaseMu.Lock()
	defer t.leaseMu.Unlock()
	return t.lease.current.Wanted != "" && time.Since(t.began) >= minHold
}

// finish publishes pending changes, releases the lease and closes the database.
// It is called once, after the last call with the holder.
func (t *holder) finish() {
	s := t.s
	ctx, cancel := context.WithTimeout(context.Background(), s.c.Timeout)
	defer cancel()
	t.mu.Lock()
	var err error
	if t.lost != nil {
		err = t.lost
	}
	t.mu.Unlock()
	if err == nil {
		err = t.publish(ctx, true)
	}
	t.end()
	t.work.Wait()
	closed := errors.Join(t.driver.Close(), t.pages.Close(), t.engine.Close())
	switch {
	case err != nil:
		s.c.Logger.Warn("the memory was not published; the next call publishes it", "error", err.Error())
	case closed != nil:
		s.c.Logger.Warn("the copy of the memory could not be closed", "error", closed.Error())
	default:
		if log, statErr := os.Stat(t.l.database() + "-wal"); statErr == nil && log.Size() > 0 {
			break // the next open compares the copy
		}
		h := t.lease.current
		if err := t.l.note(state{Store: h.Store, Term: h.Term, Version: h.Version, Phase: phaseClean}); err != nil {
			s.c.Logger.Warn("the copy of the memory could not be closed", "error", err.Error())
		}
	}
	if err != nil || closed != nil {
		t.l.published = nil
	}
}

func errClosed() error { return tea.Errorf(tea.ConnectionError, "the memory is closed") }

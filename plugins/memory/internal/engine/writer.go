package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// maxGroup bounds how many writes share a commit.
const maxGroup = 64

// writer runs all writes on one connection, one after the other. Writes that
// arrive during a commit share the next one, since most of a write's time is the
// commit's wait for the disk.
type writer struct {
	conn       *sql.Conn
	driver     Driver
	statements *statements
	// beforeWrite is called before a transaction begins.
	beforeWrite func()
	// beforeCommit returns an error if the database's files were replaced.
	beforeCommit func() error
	// checkpoint writes the log into the database; nil if the database does this
	// itself.
	checkpoint func(context.Context, *sql.Conn) error
	// altered reports whether the schema was changed since the last checkpoint.
	altered bool
	logger  *slog.Logger
	queue   chan *write
	done    chan struct{}
	// uncertain reports whether a transaction could not be rolled back and can still
	// be open: a write without BEGIN would join it.
	uncertain bool

	mu     sync.RWMutex // held for reading while a write is queued
	closed bool
}

// write is a queued transaction.
type write struct {
	ctx    context.Context //nolint:containedctx // it belongs to the call that waits
	fn     func(context.Context, store.Tx) error
	result chan error
	// taken is set by the writer when it begins, or by the caller when it stops
	// waiting.
	taken atomic.Bool
}

func newWriter(conn *sql.Conn, driver Driver, beforeWrite func(), beforeCommit func() error, checkpoint func(context.Context, *sql.Conn) error, logger *slog.Logger) *writer {
	w := &writer{conn: conn, driver: driver, statements: newStatements(conn), beforeWrite: beforeWrite, beforeCommit: beforeCommit, checkpoint: checkpoint, logger: logger, queue: make(chan *write, maxGroup), done: make(chan struct{})}
	go w.run()
	return w
}

// do queues fn and waits until its write is durable.
func (w *writer) do(ctx context.Context, fn func(context.Context, store.Tx) error) error {
	p := &write{ctx: ctx, fn: fn, result: make(chan error, 1)}
	w.mu.RLock()
	if w.closed {
		w.mu.RUnlock()
		return errClosed
	}
	select {
	case w.queue <- p:
		w.mu.RUnlock()
	case <-ctx.Done():
		w.mu.RUnlock()
		return ctx.Err()
	}
	select {
	case err := <-p.result:
		return err
	case <-ctx.Done():
	}
	if p.taken.CompareAndSwap(false, true) {
		return ctx.Err()
	}
	// The write has begun; the caller needs its result.
	return <-p.result
}

// close waits for the queued writes. whole reports whether the whole log was
// written into the database, if this is not left to the database.
func (w *writer) close() (whole bool, err error) {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	close(w.queue)
	<-w.done
	err = w.statements.close()
	whole = true
	if w.checkpoint != nil {
		failed := w.beforeCommit()
		if failed == nil {
			failed = w.checkpoint(context.Background(), w.conn)
		}
		if whole = failed == nil; !whole {
			// Nothing is lost: the next open reads the log.
			w.logger.Debug("the log of the memory was not merged into the database; the next open does it", "error", failed.Error())
		}
	}
	return whole, errors.Join(err, w.conn.Close())
}

func (w *writer) run() {
	defer close(w.done)
	for first := range w.queue {
		group := w.gather(first)
		group = slices.DeleteFunc(group, func(p *write) bool { return !p.taken.CompareAndSwap(false, true) })
		if len(group) > 0 {
			w.commit(group)
		}
	}
}

// gather returns the queued writes, beginning with first.
func (w *writer) gather(first *write) []*write {
	group := []*write{first}
	for len(group) < maxGroup {
		select {
		case next, ok := <-w.queue:
			if !ok {
				return group
			}
			group = append(group, next)
		default:
			return group
		}
	}
	return group
}

// commit runs a group in one transaction. If one of them fails, all are rolled
// back and each runs in a separate transaction.
func (w *writer) commit(group []*write) {
	err := w.transaction(group)
	if err == nil || len(group) == 1 {
		for _, p := range group {
			p.result <- err
		}
		return
	}
	for _, p := range group {
		p.result <- w.transaction([]*write{p})
	}
}

func (w *writer) transaction(group []*write) error {
	background := context.Background()
	t := newTx(w)
	for _, p := range group {
		err := p.ctx.Err()
		if err == nil {
			err = guarded(p.ctx, p.fn, t)
			t.finish()
		}
		if err != nil {
			return w.undo(t, err)
		}
	}
	if err := t.commit(background); err != nil {
		return w.undo(t, err)
	}
	w.keepSchema()
	for _, fn := range t.after {
		w.notify(fn)
	}
	return nil
}

// keepSchema makes a checkpoint after a change of the schema, because DuckDB
// replays rows more reliably than definitions. If a reader prevents it, the next
// commit tries again.
func (w *writer) keepSchema() {
	if !w.altered || w.checkpoint == nil {
		return
	}
	if err := w.checkpoint(context.Background(), w.conn); err != nil {
		w.logger.Debug("the log of the memory was not merged into the database; the next open does it", "error", err.Error())
		return
	}
	w.altered = false
}

// begin begins a transaction. It first ends a transaction that could not be
// rolled back.
func (w *writer) begin(ctx context.Context) error {
	w.beforeWrite()
	err := w.exec(ctx, "BEGIN")
	if err != nil && w.exec(ctx, "ROLLBACK") == nil {
		err = w.exec(ctx, "BEGIN")
	}
	w.uncertain = err != nil
	return err
}

// notify runs fn after a commit. A panic of fn neither ends the writer nor fails
// the committed write.
func (w *writer) notify(fn func()) {
	defer func() {
		if p := recover(); p != nil {
			w.logger.Error("panic after a commit", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	fn()
}

// undo rolls back and returns err. The rollback itself can fail if the database
// has already rolled back.
func (w *writer) undo(t *tx, err error) error {
	if t.begun {
		w.uncertain = w.exec(context.Background(), "ROLLBACK") != nil
	}
	return err
}

func (w *writer) exec(ctx context.Context, query string) error {
	stmt, err := w.statements.take(ctx, query)
	if err != nil {
		return err
	}
	defer w.statements.release(stmt)
	_, err = stmt.ExecContext(ctx)
	return err
}

// guarded converts a panic of fn to an error.
func guarded(ctx context.Context, fn func(context.Context, store.Tx) error, t store.Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic while writing: %v\n%s", p, debug.Stack())
		}
	}()
	return fn(ctx, t)
}

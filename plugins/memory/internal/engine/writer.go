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

	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

// maxGroup bounds how many writes share a commit.
const maxGroup = 64

// writer runs all writes on one connection, one after the other. Writes that
// come while a commit is under way share the next one: the commit, which
// waits for the disk, is what a write costs.
type writer struct {
	conn       *sql.Conn
	driver     Driver
	statements *statements
	// still says whether what is written will be found.
	still  func() error
	logger *slog.Logger
	queue  chan *write
	done   chan struct{}
	// uncertain says that a transaction may still be open which could not be
	// undone: what is written without beginning one might join it.
	uncertain bool

	mu     sync.RWMutex // held for reading while a write is handed over
	closed bool
}

// write is a transaction that waits for its turn.
type write struct {
	ctx    context.Context //nolint:containedctx // it belongs to the call that waits
	fn     func(context.Context, store.Tx) error
	result chan error
	// taken is set by the writer when it begins, or by the caller when it
	// does not want to wait any longer.
	taken atomic.Bool
}

func newWriter(conn *sql.Conn, driver Driver, still func() error, logger *slog.Logger) *writer {
	w := &writer{conn: conn, driver: driver, statements: newStatements(conn), still: still, logger: logger, queue: make(chan *write, maxGroup), done: make(chan struct{})}
	go w.run()
	return w
}

// do hands fn over and waits until it is durable.
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
	// A write that has begun is waited for: its caller must learn whether it
	// happened.
	return <-p.result
}

func (w *writer) close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	close(w.queue)
	<-w.done
	return errors.Join(w.statements.close(), w.conn.Close())
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

// gather takes what waits along with the first one.
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

// commit runs a group in one transaction. Where one of several fails, all are
// undone and each is run on its own, so that nobody pays for another's fault.
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
	for _, fn := range t.after {
		w.tell(fn)
	}
	return nil
}

// begin begins a transaction, ending one that could not be undone before.
func (w *writer) begin(ctx context.Context) error {
	err := w.exec(ctx, "BEGIN")
	if err != nil && w.exec(ctx, "ROLLBACK") == nil {
		err = w.exec(ctx, "BEGIN")
	}
	w.uncertain = err != nil
	return err
}

// tell runs fn after a commit. What it does is not the write's success, and
// the writer serves everybody: a panic ends neither.
func (w *writer) tell(fn func()) {
	defer func() {
		if p := recover(); p != nil {
			w.logger.Error("panic after a commit", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	fn()
}

// undo rolls back and gives the error that led there. A database that has
// rolled back by itself says that there is nothing to undo, which is fine.
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
	defer w.statements.give(stmt)
	_, err = stmt.ExecContext(ctx)
	return err
}

// guarded turns a panic of fn into an error: the writer serves everybody.
func guarded(ctx context.Context, fn func(context.Context, store.Tx) error, t store.Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic while writing: %v\n%s", p, debug.Stack())
		}
	}()
	return fn(ctx, t)
}

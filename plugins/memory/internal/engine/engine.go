package engine

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sandbox"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Engine implements [store.QueryEngine] on an embedded database. It opens the
// database at the first call, and again after a fatal error. It is safe for
// concurrent use; the owner closes it.
type Engine struct {
	options Options
	// Reads and writes fail for different reasons: a full disk must not prevent
	// reading.
	reads, writes *guard
	plans         sandbox.Plans
	unstoppable   atomic.Int32 // the number of queries that could not be stopped

	// turn is held by the goroutine that opens the database.
	turn chan struct{}
	// life ends with Close.
	life context.Context //nolint:containedctx // it cancels a running open
	end  context.CancelFunc

	mu       sync.Mutex // guards the fields below and the sessions' counts
	open     *session
	previous *session      // the session that was discarded last
	opened   chan struct{} // closed when the database is first open
	identity string        // of the database
	lost     error         // why this engine does not open the database again
	closed   bool
}

var _ store.QueryEngine = (*Engine)(nil)

// errClosed is the error of a call after Close.
var errClosed = errors.New("the memory is closed")

// Open creates an engine. The database is opened at the first call, or by Open if
// Options.Warmup is set. The caller closes the engine.
func Open(ctx context.Context, options Options) (*Engine, error) {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	options.Limits = options.Limits.withDefaults()
	if options.Limits.SpillDir == "" {
		options.Limits.SpillDir = filepath.Join(options.Dir, "spill")
	}
	if options.Limits.AllowedDir == "" {
		options.Limits.AllowedDir = filepath.Join(options.Dir, "tables")
	}
	e := &Engine{options: options, turn: make(chan struct{}, 1), opened: make(chan struct{})}
	e.reads, e.writes = newGuard(e.fault, e.full, options.Logger, "reading"), newGuard(e.fault, e.full, options.Logger, "writing")
	e.life, e.end = context.WithCancel(context.Background())
	if options.Warmup {
		s, err := e.acquire(ctx)
		if err != nil {
			e.end()
			return nil, e.wrap(ctx, err)
		}
		e.release(s)
	}
	return e, nil
}

// Dialect returns the dialect of the statements.
func (e *Engine) Dialect() store.Dialect { return e.options.Driver.Dialect() }

// Opened returns a channel that is closed when the database is first open.
func (e *Engine) Opened() <-chan struct{} { return e.opened }

// Lost returns the reason why all calls fail from now on: the database was
// removed or replaced while it was open. Otherwise it returns nil.
func (e *Engine) Lost() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lost
}

// Identity identifies the database.
func (e *Engine) Identity(ctx context.Context) (identity string, err error) {
	err = e.on(ctx, e.reads, func(*session) error {
		e.mu.Lock()
		defer e.mu.Unlock()
		identity = e.identity
		return nil
	})
	return identity, err
}

// Query runs one statement that reads. The caller closes the rows before it
// writes or closes the engine.
func (e *Engine) Query(ctx context.Context, query string, args ...any) (found store.Rows, err error) {
	err = e.reads.call(ctx, func() error {
		s, err := e.acquire(ctx)
		if err != nil {
			return err
		}
		stmt, err := s.reads.take(ctx, query)
		if err != nil {
			return e.releaseSession(ctx, s, err)
		}
		inner, err := stmt.QueryContext(ctx, args...)
		if err != nil {
			s.reads.release(stmt)
			return e.releaseSession(ctx, s, err)
		}
		found = &rows{Rows: inner, ctx: ctx, engine: e, session: s, done: func() { s.reads.release(stmt) }}
		return nil
	})
	if err != nil {
		return nil, e.wrap(ctx, err)
	}
	return found, nil
}

// rows hold their session and statement until they are closed or at their end.
type rows struct {
	*sql.Rows
	ctx     context.Context //nolint:containedctx // it belongs to the call
	engine  *Engine
	session *session
	done    func()
	once    sync.Once
}

// Next advances to the next row.
func (r *rows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.finish()
	return false
}

// Err returns the error that ended the rows, nil at their end.
func (r *rows) Err() error { return r.engine.wrap(r.ctx, r.Rows.Err()) }

// Close closes the rows.
func (r *rows) Close() error {
	err := r.Rows.Close()
	r.finish()
	return err
}

func (r *rows) finish() {
	r.once.Do(func() {
		_ = r.Rows.Close() // Err returns the error
		r.done()
		_ = r.engine.releaseSession(r.ctx, r.session, r.Rows.Err())
	})
}

// Write runs fn in a transaction that is durable on return. On a full disk a
// write that frees space ([store.Freeing]) uses the space of the reserve.
func (e *Engine) Write(ctx context.Context, fn func(ctx context.Context, tx store.Tx) error) error {
	if err := e.Writable(); err != nil {
		return err
	}
	write := func() error {
		return e.on(ctx, e.writes, func(s *session) error { return s.writer.do(ctx, fn) })
	}
	err := write()
	if e.full(err) && store.IsFreeing(ctx) && e.releaseReserve() {
		err = write()
	}
	return err
}

// Writable returns the error of every write if the database is open for reading
// only: permission_denied, wrapping [store.ErrReadOnly].
func (e *Engine) Writable() error {
	if e.options.ReadOnly == "" {
		return nil
	}
	return tea.Errorf(tea.PermissionDenied, "the memory in %s is %w: %s", e.options.Dir, store.ErrReadOnly, e.options.ReadOnly)
}

// Barrier runs fn between two writes. The circuit breaker counts it as a read.
func (e *Engine) Barrier(ctx context.Context, fn func()) error {
	return e.on(ctx, e.reads, func(s *session) error {
		if s.writer == nil {
			fn()
			return nil
		}
		return s.writer.do(ctx, func(_ context.Context, tx store.Tx) error {
			tx.AfterCommit(fn)
			return nil
		})
	})
}

// on runs a call on the open database, under a guard.
func (e *Engine) on(ctx context.Context, g *guard, fn func(*session) error) error {
	err := g.call(ctx, func() error {
		s, err := e.acquire(ctx)
		if err != nil {
			return err
		}
		return e.releaseSession(ctx, s, fn(s))
	})
	return e.wrap(ctx, err)
}

// Close waits for running calls and open rows, and closes the database. Later
// calls fail with a connection_error.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	s, previous := e.open, e.previous
	e.open = nil
	if s != nil {
		s.retire()
	}
	e.mu.Unlock()
	e.end()
	e.turn <- struct{}{} // a running open was canceled
	defer func() { <-e.turn }()
	if previous != nil {
		<-previous.gone
	}
	if s == nil {
		return nil
	}
	if e.unstoppable.Load() > 0 {
		select {
		case <-s.idle:
		case <-time.After(closeTimeout):
			return errQueryRunning()
		}
	}
	<-s.idle
	return s.close()
}

// closeTimeout bounds the time that a call waits for a failed database to be closed
// and opened again, in addition to the wait for another process.
const closeTimeout = 10 * time.Second

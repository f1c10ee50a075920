package postgres

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/backoff"

	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// database is a schema of a database. It is safe for concurrent use.
type database struct {
	pool        *pgxpool.Pool
	schema      string
	rowSecurity bool
	timeout     time.Duration
	readOnly    string
	now         func() time.Time
	terms       *fulltext.Terms
	logger      *slog.Logger
	writes      atomic.Int64
	retries     backoff.Policy

	migrating turn // held while the schema is checked
	extension found
	pgvector  *extension
	ready     atomic.Bool
	closed    atomic.Bool
}

// turn is a mutex whose lock operation honours a context.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) lock(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) unlock() { <-t }

func millis(t time.Duration) string { return strconv.FormatInt(t.Milliseconds(), 10) }

func (d *database) micro() int64 { return d.now().UnixMicro() }

// Close ends the work in the background and closes the connections.
func (d *database) Close() error {
	if !d.closed.Swap(true) {
		d.pgvector.close()
		d.pool.Close()
	}
	return nil
}

// conn is a connection or a transaction.
type conn interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// kind is whether a call reads or writes.
type kind bool

const (
	reading kind = true
	writing kind = false
)

// retries are the waits between attempts. A failover of the server takes seconds.
var retries = backoff.Policy{Base: 50 * time.Millisecond, Max: 2 * time.Second, Multiplier: 2, Jitter: 0.5}

const maxConflicts = 20

// do runs fn with a connection. fn runs again after a serialization failure, while the server is unreachable, and after
// a lost connection, so it must be idempotent; see write. The time-out of settings bounds the attempts.
func (d *database) do(ctx context.Context, k kind, fn func(ctx context.Context, c conn) error) error {
	if k == writing && d.readOnly != "" {
		return tea.Errorf(tea.PermissionDenied, "the memory in PostgreSQL is %w: %s", store.ErrReadOnly, d.readOnly)
	}
	deadline := time.Now().Add(d.timeout)
	var first error
	for attempt := 1; ; attempt++ {
		err := d.once(ctx, deadline.Add(answerGrace), fn)
		if first == nil {
			first = err
		}
		if err == nil || ctx.Err() != nil {
			return d.typed(ctx, err)
		}
		wait := d.retries.Wait(attempt)
		if again := isRetryable(err, attempt); !again || time.Now().Add(wait).After(deadline) {
			if errors.Is(err, context.DeadlineExceeded) && !errors.As(err, new(*tea.Error)) {
				return d.noResponse(first)
			}
			return d.typed(ctx, err)
		}
		if state := (*pgconn.PgError)(nil); errors.As(err, &state) && state.Code == readOnlyTransaction || isConnectionLost(err) && !pgconn.Timeout(err) {
			d.pool.Reset() // after a failover the server is a standby, or the other connections are lost too
		}
		d.logger.Debug("a statement is repeated", "attempt", attempt, "error", err.Error())
		if backoff.Sleep(ctx, wait) != nil {
			return d.typed(ctx, err)
		}
	}
}

// answerGrace is how long the response to a statement is awaited after its time-out on the server.
const answerGrace = 2 * time.Second

// once runs fn once, for a limited time even if the server no longer responds.
func (d *database) once(ctx context.Context, until time.Time, fn func(ctx context.Context, c conn) error) error {
	if d.closed.Load() {
		return tea.Errorf(tea.ConnectionError, "the memory is closed")
	}
	ctx, cancel := context.WithDeadlineCause(ctx, until, errNoResponse)
	defer cancel()
	c, err := d.pool.Acquire(ctx)
	if err != nil {
		return noConnectionError{err}
	}
	defer c.Release()
	if !d.ready.Load() {
		if err := d.migrate(ctx, c.Conn()); err != nil {
			return noConnectionError{err}
		}
	}
	return fn(ctx, c)
}

// errNoResponse is the cause when a call ends without a response.
var errNoResponse = errors.New("the server does not answer")

// noConnectionError is a failure to connect.
type noConnectionError struct{ error }

func (e noConnectionError) Unwrap() error { return e.error }

package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
	"github.com/the-edge-agent/tea/sdk/x/breaker"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	// The breaker opens after breakFailures broken calls in a row and lets
	// one call through after breakPause.
	breakFailures = 5
	breakPause    = 30 * time.Second
	// transientTries is the maximum number of attempts of a call with transient
	// faults.
	transientTries = 4
)

// transientWaits are the pauses between attempts.
var transientWaits = backoff.Policy{Base: 10 * time.Millisecond, Max: time.Second, Multiplier: 2, Jitter: 0.5}

// errOpen is the error of a call while the breaker is open.
var errOpen = errors.New("the circuit breaker is open")

// guard retries transient faults and stops calling a database that keeps failing.
type guard struct {
	fault   func(error) Fault
	full    func(error) bool
	breaker *breaker.Breaker
}

func newGuard(fault func(error) Fault, full func(error) bool, logger *slog.Logger, name string) *guard {
	return &guard{fault: fault, full: full, breaker: breaker.New(breaker.Settings{
		Failures: breakFailures,
		Pause:    breakPause,
		OnChange: func(from, to breaker.State) {
			logger.Warn("circuit breaker of the memory", "calls", name, "from", from, "to", to)
		},
	})}
}

func (g *guard) call(ctx context.Context, fn func() error) error {
	for try := 1; ; try++ {
		err := g.once(fn)
		if err == nil || try == transientTries || g.fault(err) != FaultTransient {
			return err
		}
		if backoff.Sleep(ctx, transientWaits.Wait(try)) != nil {
			return err
		}
	}
}

// once makes one call. A panic counts as a failure.
func (g *guard) once(fn func() error) (err error) {
	if !g.breaker.Allow() {
		return errOpen
	}
	works := false
	defer func() { g.breaker.Record(works) }()
	err = fn()
	works = err == nil || errors.Is(err, errReplaced) || g.full(err) || g.fault(err) < FaultBroken
	return err
}

// fault classifies an error of a call.
func (e *Engine) fault(err error) Fault {
	switch {
	case errors.Is(err, errReplaced), errors.Is(err, sql.ErrConnDone), errors.Is(err, driver.ErrBadConn):
		return FaultFatal
	case decided(err):
		return FaultStatement
	}
	return e.options.Driver.Fault(err)
}

// full reports whether an error means that the disk is full.
func (e *Engine) full(err error) bool {
	var typed *tea.Error
	if errors.As(err, &typed) {
		return typed.Type == tea.ResourceExhausted
	}
	return store.IsFull(err) || e.options.Driver.Full(err)
}

// decided reports whether the error is not the database's: the caller's own, or
// an error that already has a type.
func decided(err error) bool {
	var typed *tea.Error
	return errors.As(err, &typed) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errClosed) || errors.Is(err, errReopening)
}

// wrap sets the type of a call's error.
func (e *Engine) wrap(ctx context.Context, err error) error {
	var typed *tea.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &typed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrConflict):
		return err
	case errors.Is(err, errOpen):
		open := tea.Errorf(tea.CircuitOpen, "the memory failed %d times in a row; it is tried again after %v", breakFailures, breakPause)
		open.Retryable, open.RetryAfter = true, breakPause
		return open
	case errors.Is(err, errClosed), errors.Is(err, errReplaced), errors.Is(err, errReopening):
		return tea.Errorf(tea.ConnectionError, "%w", err)
	case ctx.Err() != nil: // the database reports an interrupt
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	switch {
	case e.full(err):
		return tea.Errorf(tea.ResourceExhausted, "no space is left for the memory in %s; reading and deleting still work: %w", e.options.Dir, err)
	case e.options.Driver.Damaged(err):
		return tea.Errorf(tea.InternalError, "the database of the memory in %s is damaged; restore a backup, or start a new one with `tea memory reset`: %w", e.options.Dir, err)
	}
	switch e.fault(err) {
	case FaultTransient, FaultBroken, FaultFatal:
		return tea.Errorf(tea.ConnectionError, "%s: %w", e.Dialect(), err)
	}
	if system := store.SystemError(err); errors.As(system, &typed) {
		return system // an error of the folder's files
	}
	return tea.Errorf(tea.QueryError, "%w", err)
}

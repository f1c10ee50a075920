package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/sony/gobreaker/v2"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

const (
	// The breaker opens after breakFailures broken calls in a row and lets
	// one call through after breakPause.
	breakFailures = 5
	breakPause    = 30 * time.Second
	// A transient fault is tried again this often, with a growing wait.
	transientTries = 4
	transientWait  = 5 * time.Millisecond
)

// guard repeats what is transient and stops asking a database that keeps
// failing.
type guard struct {
	fault   func(error) Fault
	breaker *gobreaker.CircuitBreaker[struct{}]
}

func newGuard(fault func(error) Fault, logger *slog.Logger, name string) *guard {
	g := &guard{fault: fault}
	g.breaker = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name:         name,
		MaxRequests:  1,
		Timeout:      breakPause,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakFailures },
		IsSuccessful: func(err error) bool { return err == nil || errors.Is(err, errReplaced) || fault(err) < FaultBroken },
		OnStateChange: func(name string, from, to gobreaker.State) {
			logger.Warn("circuit breaker of the memory", "calls", name, "from", from.String(), "to", to.String())
		},
	})
	return g
}

func (g *guard) call(ctx context.Context, fn func() error) error {
	for try := 1; ; try++ {
		_, err := g.breaker.Execute(func() (struct{}, error) { return struct{}{}, fn() })
		if err == nil || try == transientTries || g.fault(err) != FaultTransient {
			return err
		}
		wait := transientWait << (try - 1)
		select {
		case <-time.After(wait + rand.N(wait)):
		case <-ctx.Done():
			return err
		}
	}
}

// fault says how to treat an error of a call.
func (e *Engine) fault(err error) Fault {
	switch {
	case errors.Is(err, errReplaced), errors.Is(err, sql.ErrConnDone), errors.Is(err, driver.ErrBadConn):
		return FaultFatal
	case decided(err):
		return FaultStatement
	}
	return e.options.Driver.Fault(err)
}

// decided says that the error is not the database's: the caller's own, or one
// that has its type already.
func decided(err error) bool {
	var typed *tea.Error
	return errors.As(err, &typed) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errClosed) || errors.Is(err, errReopening)
}

// wrap gives an error of a call its type.
func (e *Engine) wrap(ctx context.Context, err error) error {
	var typed *tea.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &typed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrConflict):
		return err
	case errors.Is(err, gobreaker.ErrOpenState), errors.Is(err, gobreaker.ErrTooManyRequests):
		open := tea.Errorf(tea.CircuitOpen, "the memory failed %d times in a row; it is tried again after %v", breakFailures, breakPause)
		open.Retryable, open.RetryAfter = true, breakPause
		return open
	case errors.Is(err, errClosed), errors.Is(err, errReplaced), errors.Is(err, errReopening):
		return tea.Errorf(tea.ConnectionError, "%w", err)
	case ctx.Err() != nil: // the database says that it was interrupted
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	switch e.fault(err) {
	case FaultTransient, FaultBroken, FaultFatal:
		return tea.Errorf(tea.ConnectionError, "%s: %w", e.Dialect(), err)
	}
	// The folder's own files are no matter of the database.
	var errno syscall.Errno
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return tea.Errorf(tea.PermissionDenied, "the memory needs a folder that it may write; set settings.memory.path: %w", err)
	case errors.As(err, &errno):
		return tea.Errorf(tea.ConnectionError, "%w", err)
	}
	return tea.Errorf(tea.QueryError, "%w", err)
}

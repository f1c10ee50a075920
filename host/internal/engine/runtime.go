package engine

import (
	"context"
	"errors"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/backoff"
)

// Runtime is the clock and the concurrency of a run that another engine drives, such
// as a Temporal workflow. A normal run has no Runtime and uses goroutines and the
// system clock. All methods are called from functions that the runtime itself
// started; only one of them runs at a time.
type Runtime interface {
	// Now returns the time of the run.
	Now() time.Time
	// WithCancel and WithTimeout are the functions of package context.
	WithCancel(ctx context.Context) (context.Context, context.CancelCauseFunc)
	WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc)
	// AfterFunc calls fn after d, unless stop is called before.
	AfterFunc(ctx context.Context, d time.Duration, fn func()) (stop func())
	// Sleep waits for d. If ctx ends first, the error is its cause.
	Sleep(ctx context.Context, d time.Duration) error
	// Concurrently calls work n times, each with a separate context, and returns
	// when all calls have returned.
	Concurrently(ctx context.Context, n int, work func(ctx context.Context))
	// Once returns the result of fn, or its recorded result if the run was at the
	// same place before. fn is called outside of the run's functions.
	Once(ctx context.Context, fn func(ctx context.Context) (any, error)) (any, error)
	// Random returns a number in [0, 1).
	Random() float64
}

// ErrHandOver is the error of an action that another execution of the run will
// call. The run ends as at an interrupt, and continues from its records.
var ErrHandOver = errors.New("another execution of the run continues here")

// luaSteps is the maximum number of instructions of a piece of Lua code under a
// [Runtime], because a deadline by the clock would differ in a replay. They take a
// few seconds.
const luaSteps = 100_000_000

// withCancel is [context.WithCancelCause].
func (r *run) withCancel(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	if r.o.Runtime != nil {
		return r.o.Runtime.WithCancel(ctx)
	}
	return context.WithCancelCause(ctx)
}

// withTimeout is [context.WithTimeoutCause].
func (r *run) withTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	if r.o.Runtime != nil {
		return r.o.Runtime.WithTimeout(ctx, d, cause)
	}
	return context.WithTimeoutCause(ctx, d, cause)
}

// sleep is [backoff.Sleep].
func (r *run) sleep(ctx context.Context, d time.Duration) error {
	if r.o.Runtime != nil {
		return r.o.Runtime.Sleep(ctx, d)
	}
	return backoff.Sleep(ctx, d)
}

package httpapi

import (
	"cmp"
	"context"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
)

// Failure is a failed attempt.
type Failure struct {
	// Attempt counts the attempts so far, from 1.
	Attempt int
	Reason  *tea.Error
	// Again reports whether another attempt follows after Wait.
	Again bool
	Wait  time.Duration
	// Answered is set if the server failed while it was answering: the model has
	// worked, and a server that charges for tokens counts them.
	Answered bool
}

// waits are the waits between attempts if the server does not ask for one.
var waits = backoff.Policy{Base: 500 * time.Millisecond, Max: 30 * time.Second, Multiplier: 2, Jitter: 0.5}

// retryWait returns the wait after an attempt.
func retryWait(attempt int, failure *tea.Error) time.Duration {
	return cmp.Or(failure.RetryAfter, waits.Wait(attempt))
}

// Expire derives a context for one answer that ends after d with a timeout
// error; d <= 0 sets no limit.
func Expire(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, tea.Errorf(tea.Timeout, "no complete answer within %s (timeout_seconds)", d))
}

// contextError returns the reason why ctx ended: a limit of this package, the caller's
// deadline, or cancellation.
func contextError(ctx context.Context) *tea.Error {
	return tea.AsError(context.Cause(ctx))
}

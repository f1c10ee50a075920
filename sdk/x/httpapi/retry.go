package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
)

// Failure is a try that failed.
type Failure struct {
	// Attempt counts the tries so far, from 1.
	Attempt int
	Reason  *tea.Error
	// Again says that another try follows after Wait.
	Again bool
	Wait  time.Duration
	// Answered is set if the server failed while it was answering: the model has
	// worked, and a server that charges for tokens counts them.
	Answered bool
}

// waits are the pauses between tries where the server does not ask for one.
var waits = backoff.Policy{Base: 500 * time.Millisecond, Max: 30 * time.Second, Multiplier: 2, Jitter: 0.5}

// retryWait returns how long to wait after a try.
func retryWait(attempt int, failure *tea.Error) time.Duration {
	return cmp.Or(failure.RetryAfter, waits.Wait(attempt))
}

// retryAfter reads a Retry-After header: seconds (some servers send
// fractions) or an HTTP date. 0 where there is none or it has passed.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return duration(ms / 1000)
	}
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return duration(seconds)
	}
	if date, err := http.ParseTime(text); err == nil {
		return max(0, date.Sub(now))
	}
	return 0
}

// duration converts the seconds of a header, of which a year counts.
func duration(seconds float64) time.Duration {
	if !(seconds > 0) {
		return 0
	}
	return time.Duration(min(seconds, 365*24*60*60) * float64(time.Second))
}

// Expire derives a context for one answer that ends after d with a timeout
// error; d <= 0 sets no limit.
func Expire(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, tea.Errorf(tea.Timeout, "no complete answer within %s (timeout_seconds)", d))
}

// contextError returns why ctx ended: a limit of this package, the caller's
// deadline, or cancellation.
func contextError(ctx context.Context) *tea.Error {
	return tea.AsError(context.Cause(ctx))
}

package subproc

import (
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
	"github.com/the-edge-agent/tea/sdk/x/breaker"
)

const (
	// crashLimit crashes within crashWindow open the breaker for openFor.
	crashLimit  = 5
	crashWindow = time.Minute
	openFor     = 30 * time.Second
)

// newBreaker returns the breaker of a plugin's crashes.
func newBreaker(now func() time.Time) *breaker.Breaker {
	return breaker.New(breaker.Settings{Failures: crashLimit, Window: crashWindow, Pause: openFor, Now: now})
}

// restartWait returns the wait before the next start of a plugin, or a circuit_open
// error while its breaker is open. The first start, the first restart and the trial of
// a half-open breaker do not wait.
func restartWait(name string, b *breaker.Breaker) (time.Duration, error) {
	if !b.Allow() {
		pause := b.OpenFor()
		e := faultError(name, tea.CircuitOpen, "plugin %s keeps crashing; it is not started for the next %s", name, pause.Round(time.Second))
		e.RetryAfter = pause
		return 0, e
	}
	if b.Failures() < 2 || b.State() == breaker.HalfOpen {
		return 0, nil
	}
	waits := backoff.Policy{Base: 100 * time.Millisecond, Max: 5 * time.Second, Multiplier: 2}
	return waits.Wait(b.Failures() - 1), nil
}

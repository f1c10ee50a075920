package plugproc

import (
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

const (
	// crashLimit crashes within crashWindow open the breaker for openFor.
	crashLimit  = 5
	crashWindow = time.Minute
	openFor     = 30 * time.Second
	// firstBackoff doubles with each crash in the window, up to maxBackoff.
	// The first restart does not wait.
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 5 * time.Second
)

// breaker decides when a plugin that crashes may be started again. It is
// not safe for concurrent use.
type breaker struct {
	crashes   []time.Time // within the window, the newest at the end
	openUntil time.Time
}

// crash records a crash. One soon after the breaker was open opens it again.
func (b *breaker) crash(now time.Time) {
	b.forget(now)
	b.crashes = append(b.crashes, now)
	if len(b.crashes) >= crashLimit || b.tried(now) {
		b.openUntil = now.Add(openFor)
	}
}

// tried reports whether the breaker was open not long ago.
func (b *breaker) tried(now time.Time) bool {
	return !b.openUntil.IsZero() && now.Sub(b.openUntil) < crashWindow
}

// forget drops the crashes that are out of the window.
func (b *breaker) forget(now time.Time) {
	for len(b.crashes) > 0 && now.Sub(b.crashes[0]) > crashWindow {
		b.crashes = b.crashes[1:]
	}
}

// wait returns how long the next start has to wait, or a circuit_open error
// while the breaker is open.
func (b *breaker) wait(name string, now time.Time) (time.Duration, error) {
	if now.Before(b.openUntil) {
		e := tea.Errorf(tea.CircuitOpen, "plugin %s crashed %d times within a minute and is not started for the next %s",
			name, len(b.crashes), b.openUntil.Sub(now).Round(time.Second))
		e.Source, e.RetryAfter = name, b.openUntil.Sub(now)
		return 0, e
	}
	b.forget(now)
	if len(b.crashes) < 2 || b.tried(now) {
		return 0, nil
	}
	return min(firstBackoff<<(len(b.crashes)-2), maxBackoff), nil
}

// Package breaker is the circuit breaker of host and plugins: it stops calls to something
// that keeps failing, and allows a few calls after a pause to find out whether it works
// again. Start with [New].
//
// It differs from common libraries in three points that tea needs: the caller sets the
// clock, failures count in a row or within a window, and an open breaker reports how long
// it stays open.
package breaker

import (
	"sync"
	"time"
)

// State is the state of a [Breaker].
type State string

// The states of a breaker.
const (
	Closed   State = "closed"    // every call is allowed
	Open     State = "open"      // no call is allowed
	HalfOpen State = "half_open" // a few trial calls are allowed
)

// Settings configure a [Breaker].
type Settings struct {
	// Failures is the number of failures that opens the breaker; less than 1
	// means 1.
	Failures int
	// Window is the time within which failures count, for callers that record no
	// successes. 0 counts consecutive failures instead.
	Window time.Duration
	// Pause is how long the breaker stays open before it allows trial calls.
	Pause time.Duration
	// Trials is the number of trial calls; less than 1 means 1.
	Trials int
	// OnChange is called when the state changes; can be nil. It runs while
	// the breaker is locked and must not call it.
	OnChange func(from, to State)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Breaker is a circuit breaker. It opens after a number of failures. After a
// pause it is half open: a trial call that succeeds closes it, one that fails
// opens it again. It is safe for concurrent use. A nil Breaker allows every
// call.
type Breaker struct {
	settings Settings

	mu       sync.Mutex
	state    State
	failures []time.Time // failures that count, oldest first
	openedAt time.Time
	trials   int
}

// New returns a closed breaker.
func New(s Settings) *Breaker {
	s.Failures, s.Trials = max(1, s.Failures), max(1, s.Trials)
	if s.Now == nil {
		s.Now = time.Now
	}
	return &Breaker{settings: s, state: Closed}
}

// Allow reports whether a call can be made. The caller reports the end of an
// allowed call to [Breaker.Record].
func (b *Breaker) Allow() bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance()
	if b.state == HalfOpen {
		b.trials++
		return b.trials <= b.settings.Trials
	}
	return b.state == Closed
}

// Record counts the end of a call. A success closes the breaker, whatever its
// state. A failure while it is open changes nothing.
func (b *Breaker) Record(success bool) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.advance()
	if success {
		b.change(Closed)
		return
	}
	b.failures = append(b.failures, now)
	b.failures = b.failures[max(0, len(b.failures)-b.settings.Failures):]
	if b.state == HalfOpen || b.state == Closed && len(b.failures) >= b.settings.Failures {
		b.openedAt = now
		b.change(Open)
	}
}

// State returns the state; "" for a nil Breaker.
func (b *Breaker) State() State {
	if b == nil {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance()
	return b.state
}

// Failures returns the number of failures that count, up to the number that opens the
// breaker.
func (b *Breaker) Failures() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance()
	return len(b.failures)
}

// OpenFor returns how long the breaker stays open; 0 if it is not open.
func (b *Breaker) OpenFor() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := b.advance(); b.state == Open {
		return b.settings.Pause - now.Sub(b.openedAt)
	}
	return 0
}

// advance applies the state changes that depend on time.
func (b *Breaker) advance() time.Time {
	now := b.settings.Now()
	s := &b.settings
	for s.Window > 0 && len(b.failures) > 0 && now.Sub(b.failures[0]) > s.Window {
		b.failures = b.failures[1:]
	}
	if b.state == Open && now.Sub(b.openedAt) >= s.Pause {
		b.trials = 0
		b.change(HalfOpen)
	}
	if b.state == HalfOpen && s.Window > 0 && now.Sub(b.openedAt) >= s.Pause+s.Window {
		b.change(Closed)
	}
	return now
}

func (b *Breaker) change(to State) {
	from := b.state
	b.state = to
	if to == Closed {
		b.failures = nil
	}
	if from != to && b.settings.OnChange != nil {
		b.settings.OnChange(from, to)
	}
}

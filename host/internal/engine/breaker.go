package engine

import (
	"sync"
	"time"

	"github.com/the-edge-agent/tea/host/internal/spec"
)

// The states of a circuit breaker.
const (
	circuitClosed   = "closed"
	circuitOpen     = "open"
	circuitHalfOpen = "half_open"
)

// breakers are a run's circuit breakers, one for each branch name.
type breakers struct {
	run *run
	mu  sync.Mutex
	all map[string]*breaker
}

func (b *breakers) init(r *run) { b.run = r }

// get gives the breaker of a branch; nil, which allows everything, where none
// is configured.
func (b *breakers) get(name string, config *spec.Breaker) *breaker {
	if config == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	br := b.all[name]
	if b.all == nil {
		b.all = map[string]*breaker{}
	}
	if br == nil {
		br = &breaker{name: name, config: *config, run: b.run, now: circuitClosed}
		b.all[name] = br
	}
	return br
}

// breaker opens after a number of failures in a row, lets a few trial calls
// through after a while, and closes when they succeed.
type breaker struct {
	name   string
	config spec.Breaker
	run    *run

	mu       sync.Mutex
	now      string
	failures int
	trials   int
	openedAt time.Time
}

// allow tells whether a call may be made.
func (b *breaker) allow() bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now == circuitOpen && b.run.now().Sub(b.openedAt) >= b.config.ResetTimeout {
		b.change(circuitHalfOpen)
		b.trials = 0
	}
	switch b.now {
	case circuitOpen:
		return false
	case circuitHalfOpen:
		if b.trials >= max(1, b.config.HalfOpenMaxCalls) {
			return false
		}
		b.trials++
	}
	return true
}

// record counts a call's end.
func (b *breaker) record(success bool) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if success {
		b.failures = 0
		if b.now != circuitClosed {
			b.change(circuitClosed)
		}
		return
	}
	b.failures++
	if b.now == circuitHalfOpen || b.now == circuitClosed && b.failures >= max(1, b.config.FailureThreshold) {
		b.openedAt = b.run.now()
		b.change(circuitOpen)
	}
}

func (b *breaker) state() string {
	if b == nil {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *breaker) change(to string) {
	if from := b.now; b.run.o.Callbacks.BreakerChange != nil {
		b.run.o.Callbacks.BreakerChange(b.name, from, to)
	}
	b.now = to
}

package engine

import (
	"sync"

	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/sdk/breaker"
)

// breakers are a run's circuit breakers, one for each branch name.
type breakers struct {
	mu  sync.Mutex
	all map[string]*breaker.Breaker
}

// breaker returns the circuit breaker of a branch; nil, which allows every
// call, where none is configured.
func (r *run) breaker(branch string, config *spec.Breaker) *breaker.Breaker {
	if config == nil {
		return nil
	}
	b := &r.breakers
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[string]*breaker.Breaker{}
	}
	if b.all[branch] == nil {
		b.all[branch] = breaker.New(breaker.Settings{
			Failures: config.FailureThreshold,
			Pause:    config.ResetTimeout,
			Trials:   config.HalfOpenMaxCalls,
			Now:      r.now,
			OnChange: func(from, to breaker.State) {
				if r.o.Callbacks.BreakerChange != nil {
					r.o.Callbacks.BreakerChange(branch, string(from), string(to))
				}
			},
		})
	}
	return b.all[branch]
}

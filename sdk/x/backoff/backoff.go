// Package backoff computes the waits between the attempts of a retried operation. Start
// with [Policy]. Host and plugins share it, so that a configured wait has the same
// meaning everywhere.
package backoff

import (
	"context"
	"math"
	"math/rand/v2"
	"time"
)

// Policy is an exponential backoff with jitter. The zero value never waits.
// A Policy has no state: the caller counts the attempts. It is safe for
// concurrent use.
type Policy struct {
	// Base is the wait after the first attempt, before jitter.
	Base time.Duration
	// Max is the longest wait.
	Max time.Duration
	// Multiplier is the growth from one wait to the next.
	Multiplier float64
	// Jitter is the random fraction of a wait, from 0 to 1: many devices that fail
	// together do not retry together.
	Jitter float64
}

// Wait returns the wait after an attempt. Attempts are counted from 1. The
// result is between (1-Jitter) x d and d, where d is
// Base x Multiplier^(attempt-1) and at most Max.
func (p Policy) Wait(attempt int) time.Duration { return p.WaitBy(attempt, rand.Float64()) }

// WaitBy is [Policy.Wait] with a random number in [0, 1) from the caller.
func (p Policy) WaitBy(attempt int, random float64) time.Duration {
	if p.Base <= 0 {
		return 0
	}
	d := min(float64(p.Base)*math.Pow(p.Multiplier, float64(attempt-1)), float64(p.Max))
	return time.Duration(d * (1 - p.Jitter*random))
}

// Sleep waits for d. It returns early, with the cause of the context, when ctx
// is done.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

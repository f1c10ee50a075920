package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/sdk/value"
)

// position is what a trigger that watches values remembers across restarts.
type position struct {
	// Active reports whether the condition has started a run and was not reset.
	Active bool `json:"active,omitempty"`
	// Last is when the last run was started.
	Last time.Time `json:"last,omitzero"`
	// Sum is the digest of the value that started the last run, without a condition.
	Sum string `json:"sum,omitempty"`
	// Failing reports whether on_failure has started a run.
	Failing bool `json:"failing,omitempty"`
}

// entry returns the change of the ledger that stores the position.
func (p position) entry(trigger string) *entry {
	text, _ := json.Marshal(p) // it has no values that JSON lacks
	return &entry{File: &fileSeen{trigger, positionName, string(text)}}
}

// positionName is the name under which the ledger stores a position as a file.
const positionName = "position"

// conditions are the conditions of a trigger; see [host.Values].
type conditions interface {
	When(ctx context.Context, result, previous any) (holds, known bool, err error)
	Reset(ctx context.Context, result, previous any) (holds, known bool, err error)
}

// edge decides which values start a run. Only one goroutine uses it.
type edge struct {
	*host.ValuesConfig
	conditions conditions
	position   position
	// since is when the condition became true; zero while it is false.
	since time.Time
	// unknown reports whether the position was lost, so that a condition that is true at
	// the first value may have started a run before.
	unknown bool
}

// step returns the position after a value, and whether the value starts a run. If
// wait is not 0, the same value can start one after this time.
func (e *edge) step(ctx context.Context, result, previous any, now time.Time) (next position, starts bool, wait time.Duration, err error) {
	next = e.position
	first := e.unknown
	holds, known, err := e.conditions.When(ctx, result, previous)
	switch {
	case err != nil || e.When != nil && !known: // there is no value before
		return next, false, 0, err
	case e.When == nil && e.Every > 0:
		sum, err := digestOf(result)
		if err != nil || sum == next.Sum {
			return next, false, 0, err
		}
		next.Sum = sum
	case e.When == nil:
	case next.Active && !holds:
		if e.Reset != nil {
			if reset, _, err := e.conditions.Reset(ctx, result, previous); err != nil || !reset {
				return next, false, 0, err
			}
		}
		next.Active, e.since = false, time.Time{}
		return next, false, 0, nil
	case !holds:
		e.since, e.unknown = time.Time{}, false
		return next, false, 0, nil
	case !next.Active:
		if e.since.IsZero() {
			e.since = now
		}
		next.Active = true
		wait = e.Hold - now.Sub(e.since)
	case !e.Each:
		return next, false, 0, nil
	}
	if past := now.Sub(next.Last); !first && past >= 0 { // the clock may have been set back
		wait = max(wait, e.MinInterval-past)
	}
	if wait > 0 {
		return e.position, false, wait, nil
	}
	if e.unknown = false; !first {
		next.Last = now
	}
	return next, !first, 0, nil
}

// digestOf returns the digest of a value.
func digestOf(v any) (string, error) {
	text, err := value.Encode(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

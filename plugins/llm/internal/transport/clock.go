package transport

import (
	"context"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// TokenClock ends a stream whose tokens stopped coming. It runs only while
// the reader waits, so that a slow consumer of tokens costs nothing, and only
// from the first token on: what a model needs before that is the total
// limit's business. It belongs to one goroutine.
type TokenClock struct {
	limit   time.Duration
	cancel  context.CancelCauseFunc
	timer   *time.Timer
	started bool
}

// TokenClock makes the clock for a streamed answer. Pause must be called at
// the end. A limit <= 0 never ends the stream.
func (r Reply) TokenClock(limit time.Duration) *TokenClock {
	return &TokenClock{limit: limit, cancel: r.cancel}
}

// Start is called when the first piece of the answer is there; the limit
// holds from then on. Further calls change nothing.
func (c *TokenClock) Start() { c.started = true }

// Wait is called before reading on.
func (c *TokenClock) Wait() {
	switch {
	case !c.started || c.limit <= 0:
	case c.timer == nil:
		c.timer = time.AfterFunc(c.limit, func() {
			c.cancel(tea.Errorf(tea.Timeout, "no token came for %s (token_timeout_seconds)", c.limit))
		})
	default:
		c.timer.Reset(c.limit)
	}
}

// Pause is called when something was read, and at the end.
func (c *TokenClock) Pause() {
	if c.timer != nil {
		c.timer.Stop()
	}
}

package httpapi

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// A server that drips signs of life, but no tokens, is as good as silent.
func TestTokenClockCountsFromTheLastToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		clock := Reply{cancel: cancel}.TokenClock(10 * time.Second)
		read := func(wait time.Duration) {
			clock.Wait()
			time.Sleep(wait) //nolint:forbidigo // the clock of the bubble
			clock.Pause()
			synctest.Wait()
		}
		read(time.Hour) // before the first token
		clock.Token()
		read(6 * time.Second)
		clock.Token()
		time.Sleep(time.Hour) //nolint:forbidigo // the clock of the bubble: the reader is slow
		read(6 * time.Second)
		if ctx.Err() != nil {
			t.Fatalf("ended early: %v", context.Cause(ctx))
		}
		read(6 * time.Second)
		if e := tea.AsError(context.Cause(ctx)); e == nil || e.Type != tea.Timeout {
			t.Errorf("got %v", e)
		}
	})
}

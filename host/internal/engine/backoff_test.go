package engine

import (
	"testing"
	"time"

	"github.com/the-edge-agent/tea/host/internal/graph"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/backoff"
)

// A server may ask for more patience than any device has.
func TestBackoffCountsADayOfRetryAfter(t *testing.T) {
	t.Parallel()
	policy := graph.Retry{Policy: backoff.Policy{Base: time.Second, Max: time.Minute, Multiplier: 2}}
	for asked, want := range map[time.Duration]time.Duration{
		0: 4 * time.Second, 10 * time.Second: 10 * time.Second, 100 * 365 * 24 * time.Hour: 24 * time.Hour,
	} {
		if got := retryWait(policy, 3, &tea.Error{RetryAfter: asked}); got != want {
			t.Errorf("asked for %s: got %s, want %s", asked, got, want)
		}
	}
}

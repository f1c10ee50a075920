package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/host/internal/graph"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
)

// A server's Retry-After of a day made a run wait for a day.
func TestRetryAfterIsBounded(t *testing.T) {
	t.Parallel()
	policy := graph.Retry{Policy: backoff.Policy{Base: time.Second, Max: time.Minute, Multiplier: 2}, RetryAfterMax: time.Minute}
	for asked, want := range map[time.Duration]time.Duration{0: 4 * time.Second, 10 * time.Second: 10 * time.Second, time.Minute: time.Minute} {
		if got, err := (&run{}).retryWait(policy, 3, &tea.Error{RetryAfter: asked}); got != want || err != nil {
			t.Errorf("asked for %s: got %s and %v, want %s", asked, got, err, want)
		}
	}
	failure := &tea.Error{Type: tea.RateLimited, Message: "too many requests", RetryAfter: 24 * time.Hour}
	_, err := (&run{}).retryWait(policy, 3, failure)
	if err == nil || !strings.Contains(err.Error(), "too many requests; not retried: the wait that it asks for, 24h0m0s, is longer than retry_after_max_seconds (60)") {
		t.Errorf("got %v", err)
	}
	if failure.Message != "too many requests" {
		t.Error("the failure was changed")
	}
}

package plugproc

import (
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

func TestBreaker(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	var b breaker
	wait := func() time.Duration {
		t.Helper()
		d, err := b.wait("x", now)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for i, want := range []time.Duration{0, 0, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond} {
		if got := wait(); got != want {
			t.Errorf("after %d crashes the start waits %s, want %s", i, got, want)
		}
		b.crash(now)
		now = now.Add(time.Second)
	}
	_, err := b.wait("x", now)
	wantError(t, err, tea.CircuitOpen)
	now = now.Add(openFor)
	if got := wait(); got != 0 {
		t.Errorf("the trial waits %s", got)
	}
	b.crash(now)
	_, err = b.wait("x", now)
	wantError(t, err, tea.CircuitOpen)
	now = now.Add(openFor + 2*crashWindow)
	for range 2 {
		b.crash(now)
	}
	if got := wait(); got != firstBackoff {
		t.Errorf("old crashes count: the start waits %s, want %s", got, firstBackoff)
	}
}

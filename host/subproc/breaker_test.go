package subproc

import (
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

func TestBreaker(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	b := newBreaker(func() time.Time { return now })
	wait := func() time.Duration {
		t.Helper()
		d, err := restartWait("x", b)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for i, want := range []time.Duration{0, 0, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond} {
		if got := wait(); got != want {
			t.Errorf("after %d crashes the start waits %s, want %s", i, got, want)
		}
		b.Record(false)
		now = now.Add(time.Second)
	}
	_, err := restartWait("x", b)
	wantError(t, err, tea.CircuitOpen)
	now = now.Add(openFor)
	if got := wait(); got != 0 {
		t.Errorf("the trial waits %s", got)
	}
	b.Record(false)
	_, err = restartWait("x", b)
	wantError(t, err, tea.CircuitOpen)
	now = now.Add(openFor + 2*crashWindow)
	for range 2 {
		b.Record(false)
	}
	if got := wait(); got != 100*time.Millisecond {
		t.Errorf("old crashes count: the start waits %s, want %s", got, 100*time.Millisecond)
	}
}

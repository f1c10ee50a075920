package backoff_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/backoff"
)

func TestWaitGrowsUpToTheMaximum(t *testing.T) {
	t.Parallel()
	exact := backoff.Policy{Base: 100 * time.Millisecond, Max: time.Second, Multiplier: 2}
	for _, test := range []struct {
		policy  backoff.Policy
		attempt int
		want    time.Duration
	}{
		{exact, 1, 100 * time.Millisecond},
		{exact, 2, 200 * time.Millisecond},
		{exact, 4, 800 * time.Millisecond},
		{exact, 5, time.Second},
		{exact, 1 << 30, time.Second},
		{backoff.Policy{Base: time.Second, Max: time.Minute, Multiplier: 1}, 9, time.Second},
		{backoff.Policy{Base: time.Minute, Max: time.Second, Multiplier: 2}, 1, time.Second},
		{backoff.Policy{Max: time.Second, Multiplier: 2}, 1 << 30, 0},
		{backoff.Policy{}, 1, 0},
	} {
		if got := test.policy.Wait(test.attempt); got != test.want {
			t.Errorf("%+v: attempt %d waits %v, want %v", test.policy, test.attempt, got, test.want)
		}
	}
}

func TestJitterShortensAWaitByAtMostItsFraction(t *testing.T) {
	t.Parallel()
	p := backoff.Policy{Base: time.Second, Max: time.Minute, Multiplier: 2, Jitter: 0.5}
	seen := map[time.Duration]bool{}
	for range 1000 {
		d := p.Wait(2)
		if d < time.Second || d > 2*time.Second {
			t.Fatalf("waits %v, want 1s to 2s", d)
		}
		seen[d] = true
	}
	if len(seen) < 2 {
		t.Error("all waits are equal")
	}
}

func TestSleepEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, cause := time.Now(), errors.New("stopped")
		if err := backoff.Sleep(t.Context(), time.Minute); err != nil || time.Since(began) != time.Minute {
			t.Errorf("slept %v: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if err := backoff.Sleep(ctx, time.Hour); !errors.Is(err, cause) {
			t.Errorf("got %v, want the cause", err)
		}
	})
}

func ExamplePolicy() {
	p := backoff.Policy{Base: 100 * time.Millisecond, Max: time.Second, Multiplier: 2}
	for attempt := 1; attempt <= 5; attempt++ {
		fmt.Println(p.Wait(attempt))
	}
	// Output:
	// 100ms
	// 200ms
	// 400ms
	// 800ms
	// 1s
}

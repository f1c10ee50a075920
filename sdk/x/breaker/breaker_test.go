package breaker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/x/breaker"
)

// clock is a clock that a test sets.
type clock struct{ now time.Time }

func newClock() *clock                { return &clock{now: time.Unix(1_000_000, 0)} }
func (c *clock) time() time.Time      { return c.now }
func (c *clock) pass(d time.Duration) { c.now = c.now.Add(d) }
func fail(b *breaker.Breaker, times int) {
	for range times {
		b.Record(false)
	}
}

func TestFailuresInARowOpenTheBreaker(t *testing.T) {
	t.Parallel()
	c := newClock()
	var changes []string
	b := breaker.New(breaker.Settings{
		Failures: 3, Pause: time.Minute, Trials: 2, Now: c.time,
		OnChange: func(from, to breaker.State) { changes = append(changes, fmt.Sprint(from, " > ", to)) },
	})
	want := func(when string, state breaker.State, allowed bool) {
		t.Helper()
		if got := b.State(); got != state {
			t.Errorf("%s: state %s, want %s", when, got, state)
		}
		if got := b.Allow(); got != allowed {
			t.Errorf("%s: allowed = %v", when, got)
		}
	}
	fail(b, 2)
	b.Record(true)
	fail(b, 2)
	want("failures that are not in a row", breaker.Closed, true)
	fail(b, 1)
	want("three failures in a row", breaker.Open, false)
	c.pass(20 * time.Second)
	fail(b, 1) // of a call that began before
	if got := b.OpenFor(); got != 40*time.Second {
		t.Errorf("open for %v, want 40s", got)
	}
	c.pass(40 * time.Second)
	want("after the pause", breaker.HalfOpen, true)
	want("a second trial", breaker.HalfOpen, true)
	want("a third trial", breaker.HalfOpen, false)
	fail(b, 1)
	want("a trial failed", breaker.Open, false)
	c.pass(time.Minute)
	want("after the second pause", breaker.HalfOpen, true)
	b.Record(true)
	want("a trial succeeded", breaker.Closed, true)
	fail(b, 2)
	want("the count starts again", breaker.Closed, true)
	if got := b.OpenFor(); got != 0 {
		t.Errorf("a closed breaker is open for %v", got)
	}
	if diff := cmp.Diff([]string{
		"closed > open", "open > half_open", "half_open > open", "open > half_open", "half_open > closed",
	}, changes); diff != "" {
		t.Error(diff)
	}
}

func TestFailuresWithinAWindowOpenTheBreaker(t *testing.T) {
	t.Parallel()
	c := newClock()
	b := breaker.New(breaker.Settings{Failures: 3, Window: time.Minute, Pause: 30 * time.Second, Now: c.time})
	want := func(when string, state breaker.State, failures int) {
		t.Helper()
		if b.State() != state || b.Failures() != failures {
			t.Errorf("%s: %s with %d failures, want %s with %d", when, b.State(), b.Failures(), state, failures)
		}
	}
	fail(b, 2)
	c.pass(61 * time.Second)
	fail(b, 1)
	want("old failures do not count", breaker.Closed, 1)
	fail(b, 2)
	want("three within the window", breaker.Open, 3)
	c.pass(30 * time.Second)
	fail(b, 1)
	want("a trial fails", breaker.Open, 3)
	c.pass(30*time.Second + time.Minute)
	want("no failure for a window after the pause", breaker.Closed, 0)
}

func TestNilBreakerAllowsEverything(t *testing.T) {
	t.Parallel()
	var b *breaker.Breaker
	b.Record(false)
	if !b.Allow() || b.State() != "" {
		t.Errorf("a nil breaker refuses a call, or has the state %q", b.State())
	}
}

func TestZeroSettingsOpenAfterOneFailureAndAllowOneTrial(t *testing.T) {
	t.Parallel()
	c := newClock()
	b := breaker.New(breaker.Settings{Pause: time.Second, Now: c.time})
	b.Record(false)
	if b.Allow() {
		t.Error("closed after a failure")
	}
	c.pass(time.Second)
	if first, second := b.Allow(), b.Allow(); !first || second {
		t.Errorf("trials allowed: %v, %v", first, second)
	}
}

func Example() {
	c := newClock()
	b := breaker.New(breaker.Settings{Failures: 2, Pause: time.Minute, Now: c.time})
	b.Record(false)
	b.Record(false)
	fmt.Println(b.State(), b.Allow(), b.OpenFor())
	c.pass(time.Minute)
	fmt.Println(b.Allow(), b.State())
	b.Record(true)
	fmt.Println(b.State())
	// Output:
	// open false 1m0s
	// true half_open
	// closed
}

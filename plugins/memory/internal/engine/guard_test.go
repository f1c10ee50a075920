package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

var (
	errStatement = errors.New("statement")
	errTransient = errors.New("transient")
	errBroken    = errors.New("broken")
)

func testGuard() *guard {
	fault := func(err error) Fault {
		switch {
		case errors.Is(err, errTransient):
			return FaultTransient
		case errors.Is(err, errBroken):
			return FaultBroken
		}
		return FaultStatement
	}
	return newGuard(fault, func(err error) bool { return errors.Is(err, syscall.ENOSPC) }, slog.New(slog.DiscardHandler), "test")
}

// calls makes a call and says how often it ran.
func calls(t *testing.T, g *guard, errs ...error) (ran int, err error) {
	t.Helper()
	err = g.call(t.Context(), func() error {
		ran++
		return errs[min(ran, len(errs))-1]
	})
	return ran, err
}

func TestFiveFailuresInARowOpenTheCircuitFor30Seconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := testGuard()
		for range 20 { // none of these is the database's
			_, _ = calls(t, g, errStatement)
		}
		for range 3 {
			for range 4 {
				_, _ = calls(t, g, fmt.Errorf("wrapped: %w", errBroken))
			}
			if _, err := calls(t, g, nil); err != nil {
				t.Errorf("after four failures: %v", err)
			}
		}
		for i := range 5 {
			if ran, err := calls(t, g, errBroken); ran != 1 || !errors.Is(err, errBroken) {
				t.Errorf("failure %d ran %d times: %v", i, ran, err)
			}
		}
		open := func(when string) {
			t.Helper()
			if ran, err := calls(t, g, nil); ran != 0 || !errors.Is(err, errOpen) {
				t.Errorf("%s: ran %d times, %v", when, ran, err)
			}
		}
		open("at once")
		time.Sleep(30*time.Second - time.Nanosecond) //nolint:forbidigo // the clock of the bubble
		open("just before 30 s")
		time.Sleep(2 * time.Nanosecond) //nolint:forbidigo // the clock of the bubble
		if ran, err := calls(t, g, errBroken); ran != 1 || !errors.Is(err, errBroken) {
			t.Errorf("the call after 30 s ran %d times: %v", ran, err)
		}
		open("after it failed")
		time.Sleep(30*time.Second + time.Nanosecond) //nolint:forbidigo // the clock of the bubble
		began, end := make(chan struct{}), make(chan error)
		half := make(chan error, 1)
		go func() {
			half <- g.call(t.Context(), func() error { close(began); return <-end })
		}()
		<-began
		if ran, err := calls(t, g, nil); ran != 0 || !errors.Is(err, errOpen) {
			t.Errorf("a second call while one is tried: ran %d times, %v", ran, err)
		}
		end <- nil
		if err := <-half; err != nil {
			t.Error(err)
		}
		for range 4 {
			_, _ = calls(t, g, errBroken)
		}
		if ran, err := calls(t, g, nil); ran != 1 || err != nil {
			t.Errorf("closed again: ran %d times, %v", ran, err)
		}
	})
}

func TestTransientFaultsAreTriedAgainWithGrowingWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			errs []error
			want int
			err  error
			most time.Duration
		}{
			{[]error{nil}, 1, nil, 0},
			{[]error{errStatement}, 1, errStatement, 0},
			{[]error{errBroken}, 1, errBroken, 0},
			{[]error{errTransient, nil}, 2, nil, 10 * time.Millisecond},
			{[]error{errTransient, errTransient, errStatement}, 3, errStatement, 30 * time.Millisecond},
			{[]error{errTransient}, 4, errTransient, 70 * time.Millisecond},
		} {
			started := time.Now()
			ran, err := calls(t, testGuard(), test.errs...)
			took := time.Since(started)
			if ran != test.want || !errors.Is(err, test.err) || took > test.most || took < test.most/2 {
				t.Errorf("%v: ran %d times within %v, %v", test.errs, ran, took, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		ran := 0
		err := testGuard().call(ctx, func() error { ran++; cancel(); return errTransient })
		if ran != 1 || !errors.Is(err, errTransient) {
			t.Errorf("a caller that left: ran %d times, %v", ran, err)
		}
	})
}

func TestLimitsFollowTheMachine(t *testing.T) {
	t.Parallel()
	l := Limits{}.withDefaults()
	if l.Connections != 5 || l.Threads < 1 || l.Threads > 4 || l.MemoryBytes < 64<<20 || l.MemoryBytes > 1<<30 {
		t.Errorf("defaults %+v", l)
	}
	own := Limits{Connections: 2, Threads: 3, MemoryBytes: 1 << 20}
	if got := own.withDefaults(); got != own {
		t.Errorf("%+v became %+v", own, got)
	}
}

package memory

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/backoff"

	"github.com/the-edge-agent/tea/plugins/memory/internal/syncing"
)

// newBackground starts synchronising with run, which is told the number of the
// call.
func newBackground(t *testing.T, delay time.Duration, log *bytes.Buffer, run func(ctx context.Context, n int) error) *background {
	t.Helper()
	opened := make(chan struct{})
	close(opened)
	n := 0
	b := &background{
		opened: opened, now: time.Now, delay: delay, interval: time.Hour, retries: backoff.Policy{Base: time.Millisecond, Max: time.Millisecond, Multiplier: 1},
		logger: slog.New(slog.NewTextHandler(log, nil)),
		run: func(ctx context.Context) (syncing.Result, error) {
			n++
			return syncing.Result{Pushed: 1}, run(ctx, n)
		},
	}
	b.start()
	return b
}

func TestChangesAreSynchronisedInTheBackground(t *testing.T) {
	t.Parallel()
	ran := make(chan int)
	b := newBackground(t, 0, &bytes.Buffer{}, func(_ context.Context, n int) error { ran <- n; return nil })
	<-ran // at the start
	b.changed()
	<-ran
	b.changed()
	b.changed() // while it runs, or before
	<-ran
	go b.end()
	for {
		select {
		case <-ran: // once more for the last change
		case <-b.done:
			if s := b.status(); s.Changes || s.State != "waiting" || s.Pushed < 3 || s.Last.IsZero() {
				t.Errorf("%+v", s)
			}
			return
		}
	}
}

func TestAFailureIsLoggedOnceAndTriedAgain(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	recovered := make(chan struct{})
	b := newBackground(t, 0, &log, func(_ context.Context, n int) error {
		if n < 20 {
			return errors.New("offline")
		}
		close(recovered)
		return nil
	})
	b.changed()
	<-recovered
	b.end()
	if got := strings.Count(log.String(), "offline"); got != 1 {
		t.Errorf("the failure is logged %d times:\n%s", got, &log)
	}
	if !strings.Contains(log.String(), "synchronised again") {
		t.Errorf("the recovery is not logged:\n%s", &log)
	}
	if s := b.status(); s.Failures != 0 || s.Error != "" || s.Changes {
		t.Errorf("%+v", s)
	}
}

func TestTheEndInterruptsASyncAndSynchronisesTheLastChanges(t *testing.T) {
	t.Parallel()
	began, last := make(chan struct{}), make(chan error, 1)
	b := newBackground(t, 0, &bytes.Buffer{}, func(ctx context.Context, n int) error {
		if n == 1 {
			close(began)
			<-ctx.Done()
			return ctx.Err()
		}
		last <- ctx.Err()
		return nil
	})
	<-began
	b.changed()
	b.end()
	if err := <-last; err != nil {
		t.Errorf("the last one began with %v", err)
	}
}

func TestTheEndDoesNotWaitForAMemoryThatCannotBeReached(t *testing.T) {
	t.Parallel()
	failed := make(chan struct{}, 1000)
	b := newBackground(t, 0, &bytes.Buffer{}, func(ctx context.Context, _ int) error {
		if ctx.Done() == nil {
			t.Error("a sync without a limit")
		}
		select {
		case failed <- struct{}{}:
		default:
		}
		return errors.New("offline")
	})
	<-failed
	<-failed // so the first failure was noted
	b.changed()
	b.end()
	if s := b.status(); s.State == "running" || !s.Changes || s.Failures < 1 {
		t.Errorf("%+v", s)
	}
}

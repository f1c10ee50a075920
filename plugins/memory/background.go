package memory

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/backoff"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/syncing"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// syncAtEnd bounds the last synchronisation of a process that ends after changes.
const syncAtEnd = 3 * time.Second

// syncRetries are the waits after failures: a device can be offline for weeks.
var syncRetries = backoff.Policy{Base: 5 * time.Second, Max: 10 * time.Minute, Multiplier: 2, Jitter: 0.5}

// SyncStatus describes synchronising in the background.
type SyncStatus struct {
	State     string        `json:"state" enum:"waiting,running,failing" doc:"failing: the last time failed, it is tried again"`
	Changes   bool          `json:"changes" doc:"there are changes that were not synchronised yet"`
	Last      clock.Instant `json:"last" doc:"when the memory was last synchronised since the start of the plugin; empty for never"`
	Error     string        `json:"error" doc:"why the last time failed"`
	Failures  int64         `json:"failures" doc:"number of failures since then"`
	Pulled    int64         `json:"pulled" doc:"number of records that were written to this memory or deleted in it since the start of the plugin"`
	Pushed    int64         `json:"pushed" doc:"the same for the other memory"`
	Conflicts int64         `json:"conflicts" doc:"number of conflicts since the start of the plugin"`
	// Resolved and Refused are the last maxResolved ones.
	Resolved []syncing.Conflict `json:"resolved" doc:"the last conflicts since the start of the plugin, with the side that won; at most 100"`
	Refused  []string           `json:"refused" doc:"the last records since the start of the plugin that one side cannot store, with the reasons; at most 100"`
}

const maxResolved = 100

// opened returns a channel that is closed at the first use of the memory. A page
// opens a memory only to use it.
func (f *folder) opened() <-chan struct{} {
	if !inPage {
		return f.embedded.engine.Opened()
	}
	opened := make(chan struct{})
	close(opened)
	return opened
}

// background synchronises a folder in the background: at its first use, after
// changes, and at intervals.
type background struct {
	opened          <-chan struct{} // closed at the first use
	run             func(ctx context.Context) (syncing.Result, error)
	now             func() time.Time
	delay, interval time.Duration
	retries         backoff.Policy
	online          func(wake func()) (stop func()) // see WithOnline; nil = unknown
	logger          *slog.Logger

	wake   chan struct{}
	again  chan struct{} // signals that the network is back
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	state SyncStatus
}

// synchronises starts the background synchronisation of a folder. The caller ends
// it.
func (f *folders) synchronises(local *folder) *background {
	with := local.settings.Sync
	b := &background{
		opened: local.opened(), online: f.backends.online, now: local.clock.Now, logger: slog.Default(),
		delay: time.Duration(with.DelaySeconds * float64(time.Second)), interval: time.Duration(with.IntervalSeconds * float64(time.Second)),
		retries: syncRetries,
		run: func(ctx context.Context) (syncing.Result, error) {
			return f.synchronise(ctx, local, with, func(o *syncing.Options) {
				if with.Conflicts != "" {
					o.Policy = syncing.Policy(with.Conflicts)
				}
				o.Wait = limiter(with.MaxBytesPerSecond)
			})
		},
	}
	b.start()
	return b
}

func (b *background) start() {
	ctx, cancel := context.WithCancel(context.Background())
	b.wake, b.again, b.done, b.cancel = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}), cancel
	b.state = SyncStatus{State: "waiting", Resolved: []syncing.Conflict{}, Refused: []string{}}
	go b.loop(ctx)
}

// changed records that the memory has changed. It does not block.
func (b *background) changed() {
	b.mu.Lock()
	b.state.Changes = true
	b.mu.Unlock()
	signal(b.wake)
}

// signal wakes a loop unless a wake-up is already pending.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (b *background) status() *SyncStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.state
	return &s
}

func (b *background) loop(ctx context.Context) {
	defer close(b.done)
	select {
	case <-b.opened:
	case <-ctx.Done():
		return
	}
	if b.online != nil {
		defer b.online(func() { signal(b.again) })()
	}
	due := time.Now()
	next := time.NewTimer(0)
	defer next.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-b.wake:
			// After a failure, a write does not shorten the wait.
			if soon := time.Now().Add(b.delay); soon.Before(due) && b.status().Failures == 0 {
				due = soon
				next.Reset(b.delay)
			}
		case <-b.again:
			due = time.Now()
			next.Reset(0)
		case <-next.C:
			wait := b.interval
			if b.once(ctx) != nil {
				wait = b.retries.Wait(int(b.status().Failures))
			}
			due = time.Now().Add(wait)
			next.Reset(wait)
		}
	}
	b.last(context.WithoutCancel(ctx))
}

// last synchronises pending changes when the process ends, unless the last
// attempt failed.
func (b *background) last(ctx context.Context) {
	if s := b.status(); !s.Changes || s.Failures > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, syncAtEnd)
	defer cancel()
	_ = b.once(ctx) // the error is logged, and the next process continues
}

// once synchronises the memory and records the result.
func (b *background) once(ctx context.Context) error {
	b.mu.Lock()
	b.state.State, b.state.Changes = "running", false
	b.mu.Unlock()
	r, err := b.run(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &b.state
	s.Pulled, s.Pushed, s.Conflicts = s.Pulled+r.Pulled+r.DeletedLocally, s.Pushed+r.Pushed+r.DeletedThere, s.Conflicts+r.Conflicts
	if err != nil && ctx.Err() != nil { // the process ends
		s.State, s.Changes = "waiting", true
		return err
	}
	if errors.Is(err, store.ErrReadOnly) { // another tab synchronises
		s.State, s.Error = "waiting", err.Error()
		return nil
	}
	if err != nil {
		s.State, s.Changes, s.Error = "failing", true, err.Error()
		if s.Failures++; s.Failures == 1 {
			b.logger.Warn("the memory cannot be synchronised; it is retried in the background", "error", s.Error)
		}
		return err
	}
	if s.Failures > 0 {
		b.logger.Info("the memory is synchronised again", "failures", s.Failures)
	}
	s.State, s.Error, s.Failures, s.Last = "waiting", "", 0, clock.Instant{Time: b.now()}
	s.Resolved = append(s.Resolved, r.Resolved...)
	s.Resolved = s.Resolved[max(0, len(s.Resolved)-maxResolved):]
	if refused := slices.DeleteFunc(r.Refused, func(reason string) bool { return slices.Contains(s.Refused, reason) }); len(refused) > 0 {
		b.logger.Warn("records are not synchronised; memory.inspect lists them", "number", len(refused), "first", refused[0])
		s.Refused = append(s.Refused, refused...)
		s.Refused = s.Refused[max(0, len(s.Refused)-maxResolved):]
	}
	return nil
}

// end stops synchronising and waits for it.
func (b *background) end() {
	b.cancel()
	<-b.done
}

package memory

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	// sweepEvery is the time between two sweeps.
	sweepEvery = time.Hour
	// sweepDelay lets the first calls finish before a sweep.
	sweepDelay = 200 * time.Millisecond
	// sweepAtEnd bounds the sweep of a process that ends before its first one.
	sweepAtEnd = 500 * time.Millisecond
	// sweepGrace is how long expired entries are kept: a device can start with a
	// clock that is a day ahead.
	sweepGrace = 25 * time.Hour
	// lastSweepFile has the time of the last complete sweep.
	lastSweepFile = "swept"
)

// sweep archives expired sessions, and removes entries that expired before the
// grace period and blobs that a crash left.
func (f *folder) sweep(ctx context.Context, grace time.Duration) error {
	if inPage {
		_, err := f.longterm.Sweep(ctx, f.clock.Now().Add(-grace))
		return err
	}
	_, sessions := f.sessions.Sweep(ctx)
	_, entries := f.longterm.Sweep(ctx, f.clock.Now().Add(-grace))
	if f.embedded == nil {
		// Unused contents stay: another process may be about to refer to them.
		return errors.Join(sessions, entries)
	}
	return errors.Join(sessions, entries, f.files.Sweep(ctx), f.embedded.sweep(ctx))
}

// sweepContents removes the contents that nothing uses and, in a page, expired entries.
// It needs no free space.
func (f *folder) sweepContents(ctx context.Context) error {
	if inPage {
		return f.sweep(ctx, 0)
	}
	if f.embedded == nil {
		return errors.ErrUnsupported // see sweep
	}
	return errors.Join(f.embedded.sweepContents(ctx), f.files.Sweep(ctx))
}

// sweeper sweeps a folder in the background: soon after its first use and then
// periodically.
type sweeper struct {
	dir    string          // set if the memory is swept when a short run ends
	opened <-chan struct{} // closed at the first use
	sweep  func(ctx context.Context) error
	every  time.Duration
	delay  time.Duration
	logger *slog.Logger

	cancel context.CancelFunc
	done   chan struct{}
}

// sweeps starts the sweeper of a folder. The caller ends it.
func (f *folder) sweeps() *sweeper {
	s := &sweeper{
		dir: f.dir, opened: f.embedded.engine.Opened(), every: sweepEvery, delay: sweepDelay, logger: slog.Default(),
		sweep: func(ctx context.Context) error { return f.sweep(ctx, sweepGrace) },
	}
	s.start()
	return s
}

// sweepsRemote starts the sweeper of a memory in a Backend.
func (f *folder) sweepsRemote() *sweeper {
	opened, delay := make(chan struct{}), sweepDelay
	if inPage {
		// A visit can be short, and a page that only reads must not become the writer.
		f.wrote = sync.OnceFunc(func() { close(opened) })
	} else {
		close(opened)
		delay = remoteSweepDelay
	}
	s := &sweeper{
		opened: opened, every: sweepEvery, delay: delay, logger: slog.Default(),
		sweep: func(ctx context.Context) error { return f.sweep(ctx, sweepGrace) },
	}
	s.start()
	return s
}

func (s *sweeper) start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.done = cancel, make(chan struct{})
	go s.run(ctx)
}

func (s *sweeper) run(ctx context.Context) {
	defer close(s.done)
	select {
	case <-s.opened:
	case <-ctx.Done():
		select {
		case <-s.opened:
		default:
			return // the folder was not used
		}
	}
	next := time.NewTimer(s.delay)
	defer next.Stop()
	for swept := false; ; swept = true {
		select {
		case <-next.C:
			s.once(ctx)
			next.Reset(s.every)
		case <-ctx.Done():
			if !swept && s.due() {
				s.last()
			}
			return
		}
	}
}

func (s *sweeper) once(ctx context.Context) {
	err := s.sweep(ctx)
	switch {
	case err == nil && s.dir == "":
	case err == nil:
		if err := os.WriteFile(filepath.Join(s.dir, lastSweepFile), nil, 0o600); err != nil {
			s.logger.Warn("the time of the sweep cannot be stored", "error", err.Error())
		}
	case ctx.Err() == nil:
		s.logger.Warn("unused data cannot be removed; it is retried later", "error", err.Error())
	}
}

// due reports whether the last sweep was long ago. Without it, a folder with
// only short runs would never be swept.
func (s *sweeper) due() bool {
	if s.dir == "" {
		return false
	}
	info, err := os.Stat(filepath.Join(s.dir, lastSweepFile))
	if err != nil {
		return true
	}
	since := time.Since(info.ModTime())
	return since > s.every || since < 0
}

func (s *sweeper) last() {
	ctx, cancel := context.WithTimeout(context.Background(), sweepAtEnd)
	defer cancel()
	s.once(ctx)
}

// end stops the sweeper and waits for it.
func (s *sweeper) end() {
	s.cancel()
	<-s.done
}

package plugproc

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/backoff"
)

// delayReport is the time after which a swap that waits for calls is logged, and
// logged again.
const delayReport = 30 * time.Second

// writingTries and writingWait are how often, and after which time, a binary
// that is open for writing is tried again.
const (
	writingTries = 20
	writingWait  = 50 * time.Millisecond
)

// Swap is the result of replacing one plugin by the version that is in its
// place now.
type Swap struct {
	Name string
	Path string
	// From and To are the versions of the manifests. To is empty if the new
	// manifest is not known.
	From, To string
	// Generation is the number of the process that takes calls now; 0 if none
	// runs.
	Generation int
	// Err is the reason why the new version is not used. The previous one is.
	Err error
}

// Refusal is a version that a plugin was not replaced by.
type Refusal struct {
	Path    string
	Version string // empty if the manifest is not known
	At      time.Time
	Err     error
}

// swap replaces the plugin by the version in a file. If the error is not nil,
// the present version stays. A plugin that is not running is checked and not
// started.
func (s *supervisor) swap(ctx context.Context, b binary) (done Swap) {
	s.swapping.Lock()
	defer s.swapping.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()

	old := s.version()
	done = Swap{Name: s.name, Path: b.path, From: old.manifest.Version}
	m, err := s.learnFinished(ctx, b)
	if err == nil {
		done.To = m.Version
		err = compatible(old.manifest, m)
	}
	if err == nil {
		done.Generation, err = s.replace(ctx, newExecutable(b, m))
	}
	if done.Err = err; err == nil {
		old.close()
	}
	s.report(done)
	return done
}

// learnFinished is learn for a binary that can have been written just now. The
// system does not execute it while it is open for writing.
func (s *supervisor) learnFinished(ctx context.Context, b binary) (tea.Manifest, error) {
	for range writingTries {
		m, err := s.learn(ctx, b)
		if !errors.Is(err, syscall.ETXTBSY) || backoff.Sleep(ctx, writingWait) != nil {
			return m, err
		}
	}
	return s.learn(ctx, b)
}

// learn returns the manifest of a binary, the stored one or its own.
func (s *supervisor) learn(ctx context.Context, b binary) (tea.Manifest, error) {
	if err := s.launcher.options.verify(b.name, b.path); err != nil {
		return tea.Manifest{}, startError(s.name, tea.PermissionDenied, "%w", err)
	}
	m, err := s.store.read(b)
	if err == nil {
		return m, nil
	}
	if m, err = s.launcher.describe(ctx, b); err != nil {
		return m, err
	}
	s.store.write(b, m)
	return m, nil
}

// successor returns the version that has replaced one before its first start.
func (s *supervisor) successor(ctx context.Context, old *executable) (*executable, error) {
	b, err := inspect(filepath.Split(old.binary.path))
	if err != nil {
		return nil, startError(s.name, tea.DependencyMissing, "%s: %w", old.binary.path, err)
	}
	m, err := s.learn(ctx, b)
	if err != nil {
		return nil, err
	}
	if err := compatible(old.manifest, m); err != nil {
		return nil, startError(s.name, tea.DependencyMissing,
			"%s was replaced (version %s by %s) after the workflow was checked; run it again to check it with the new one (%w)", b.path, old.manifest.Version, m.Version, err)
	}
	return newExecutable(b, m), nil
}

// replace makes a version the current one. It returns the number of the new
// generation, or 0 if the plugin was not running.
func (s *supervisor) replace(ctx context.Context, e *executable) (int, error) {
	s.mu.Lock()
	attempt := s.start
	idle := s.current == nil && attempt == nil
	if idle && !s.closed {
		s.executable, s.breaker = e, newBreaker(time.Now)
	}
	s.mu.Unlock()
	if idle {
		return 0, nil
	}
	if attempt != nil {
		<-attempt.done
	}
	p, err := s.launch(ctx, e)
	if err != nil {
		return 0, err
	}
	next := newGeneration(e, p)
	if err := s.takeOver(ctx, next); err != nil {
		p.stopping.Store(true)
		p.kill()
		e.close()
		return 0, err
	}
	s.releaseClosed(next)
	return next.number, nil
}

// takeOver moves the instances and the calls to the next generation.
func (s *supervisor) takeOver(ctx context.Context, next *generation) error {
	current := s.running()
	if current != nil {
		if err := next.adopt(ctx, current.opened()); err != nil {
			return err
		}
	}
	if err := next.process.wire.Health(ctx); err != nil {
		return next.fault(ctx, "health", err)
	}
	return s.route(next)
}

// adopt configures the instances of another generation.
func (g *generation) adopt(ctx context.Context, instances map[string]tea.Settings) error {
	for id, settings := range instances {
		if err := g.configure(ctx, id, settings); err != nil {
			return fmt.Errorf("configure it: %w", err)
		}
	}
	return nil
}

// route sends new calls to a generation. The previous one ends after its last
// call.
func (s *supervisor) route(next *generation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.errClosed()
	}
	old := s.current
	s.install(next)
	s.breaker = newBreaker(time.Now)
	if old != nil {
		s.draining[old] = true
		over := old.endTurn()
		s.watches.Go(func() { s.drain(old, over) })
	}
	return nil
}

// drain ends a generation after its last call.
func (s *supervisor) drain(gen *generation, over <-chan struct{}) {
	if s.await(s.life, gen, over) != nil {
		return // stop ends it
	}
	s.mu.Lock()
	_, mine := s.draining[gen]
	delete(s.draining, gen)
	s.mu.Unlock()
	if mine {
		ctx, cancel := context.WithTimeout(context.Background(), defaultGrace)
		defer cancel()
		gen.process.stop(ctx)
	}
}

// await waits for the end of a turn and reports the actions that delay it.
func (s *supervisor) await(ctx context.Context, gen *generation, over <-chan struct{}) error {
	report := time.NewTicker(delayReport)
	defer report.Stop()
	for {
		select {
		case <-over:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-report.C:
			s.logger.Info("the previous version of the plugin still has calls", "actions", gen.process.unanswered.String(), "pid", gen.process.runner.ID())
		}
	}
}

// releaseClosed releases the instances that were closed during the swap.
func (s *supervisor) releaseClosed(gen *generation) {
	ctx, cancel := context.WithTimeout(s.life, defaultGrace)
	defer cancel()
	for id := range gen.opened() {
		s.mu.Lock()
		open := s.instances[id]
		s.mu.Unlock()
		if !open {
			if err := gen.release(ctx, id); err != nil {
				s.logger.Warn("an instance was not released", "error", err)
			}
		}
	}
}

// report logs the result of a swap.
func (s *supervisor) report(done Swap) {
	s.mu.Lock()
	if s.refused = nil; done.Err != nil {
		s.refused = &Refusal{Path: done.Path, Version: done.To, At: time.Now(), Err: done.Err}
	}
	s.mu.Unlock()
	switch {
	case done.Err == nil:
		s.logger.Info("the plugin was replaced", "from", done.From, "to", done.To, "generation", done.Generation)
	case s.life.Err() == nil && !errors.Is(done.Err, context.Canceled):
		s.logger.Warn("the new version of the plugin is not used; the present one stays", "present", done.From, "new", done.To, "path", done.Path, "error", reason(done.Err))
	}
}

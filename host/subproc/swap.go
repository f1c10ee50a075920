package subproc

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Swap is the result of replacing a plugin by the version that is now in its place.
type Swap struct {
	Name string
	Path string
	// From and To are the versions in the manifests. To is empty if the new
	// manifest is not known.
	From, To string
	// Generation is the number of the process that takes calls now; 0 if none
	// runs.
	Generation int
	// Err is the reason why the new version is not used; the previous one still is.
	Err error
}

// Refusal is a new version that was refused.
type Refusal struct {
	Path    string
	Version string // empty if the manifest is not known
	At      time.Time
	Err     error
}

// swap replaces the plugin by the version in a file, if it is a different one. If the
// error is not nil, the current version stays. A plugin that has not been started yet is
// started only for the check.
func (s *supervisor) swap(ctx context.Context, b binary) (done Swap, isOther bool) {
	s.swapping.Lock()
	defer s.swapping.Unlock()
	if !s.isReplacedBy(b) {
		return Swap{}, false
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()

	old := s.version()
	done = Swap{Name: s.name, Path: b.path, From: old.manifest.Version}
	m, err := s.readManifest(ctx, b)
	if err == nil {
		done.To = m.Version
		err = compatible(old.manifest, m)
	}
	if err == nil {
		err = s.replace(ctx, newExecutable(b, m))
	}
	if done.Err = err; err == nil {
		old.close()
	}
	return s.report(done), true
}

// readManifest returns the manifest of a binary, stored or from the plugin.
func (s *supervisor) readManifest(ctx context.Context, b binary) (tea.Manifest, error) {
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
	s.store.keep(b, m)
	return m, nil
}

// successor returns the version that replaced another one before its first start.
func (s *supervisor) successor(ctx context.Context, old *executable) (*executable, error) {
	b, err := inspect(filepath.Split(old.binary.path))
	if err != nil {
		return nil, startError(s.name, tea.DependencyMissing, "%s: %w", old.binary.path, err)
	}
	m, err := s.readManifest(ctx, b)
	if err != nil {
		return nil, err
	}
	if err := compatible(old.manifest, m); err != nil {
		return nil, startError(s.name, tea.DependencyMissing,
			"%s was replaced (version %s by %s) after the workflow was checked; run it again to check it with the new one (%w)", b.path, old.manifest.Version, m.Version, err)
	}
	return newExecutable(b, m), nil
}

// replace makes a version the current one.
func (s *supervisor) replace(ctx context.Context, e *executable) error {
	s.mu.Lock()
	attempt := s.start
	s.mu.Unlock()
	if attempt != nil {
		<-attempt.done
	}
	p, err := s.launch(ctx, e)
	if err != nil {
		return err
	}
	if s.isUnused() {
		p.stop(context.WithoutCancel(ctx))
		return s.accept(e)
	}
	next := newGeneration(e, p)
	if err := s.takeOver(ctx, next); err != nil {
		p.stopping.Store(true)
		p.kill()
		e.close()
		return err
	}
	s.releaseClosed(next)
	return nil
}

// isUnused reports whether the plugin has not been started yet.
func (s *supervisor) isUnused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.numbered == 0 && s.start == nil
}

// accept sets the version to start next. A generation of another version that was started
// meanwhile stays until the next swap.
func (s *supervisor) accept(e *executable) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.errClosed()
	}
	s.executable = e
	return nil
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

// report logs and completes the result of a swap.
func (s *supervisor) report(done Swap) Swap {
	if gen := s.running(); gen != nil {
		done.Generation = gen.number
	}
	s.mu.Lock()
	if s.refused = nil; done.Err != nil {
		s.refused = &Refusal{Path: done.Path, Version: done.To, At: time.Now(), Err: done.Err}
	}
	s.mu.Unlock()
	switch {
	case done.Err == nil:
		s.logger.Info("the plugin was replaced", "from", done.From, "to", done.To, "generation", done.Generation)
	case s.life.Err() == nil && !errors.Is(done.Err, context.Canceled):
		s.logger.Warn("the new version of the plugin is not used; the current one stays in use", "present", done.From, "new", done.To, "path", done.Path, "error", reason(done.Err))
	}
	return done
}

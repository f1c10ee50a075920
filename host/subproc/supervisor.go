package subproc

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
	"github.com/the-edge-agent/tea/sdk/x/breaker"
)

// supervisor represents one plugin: it starts the process when it is first needed and
// after a crash. It is safe for concurrent use.
type supervisor struct {
	name     string
	logger   *slog.Logger
	launcher *launcher
	store    manifestStore

	// life ends with stop, and ends starts and the waits before them.
	life context.Context
	end  context.CancelFunc
	// watches are the goroutines that wait for the end of generations.
	watches sync.WaitGroup
	// swapping is held during a swap.
	swapping sync.Mutex

	mu         sync.Mutex
	closed     bool
	executable *executable // the version to start
	current    *generation // takes new calls; nil if none runs
	numbered   int         // generations so far
	// draining are the generations whose remaining calls have not ended.
	draining  map[*generation]bool
	instances map[string]bool  // by id, until they are closed
	gate      chan struct{}    // closed when calls can begin again; nil if they can
	start     *start           // in progress; nil if there is none
	refused   *Refusal         // of the last swap; nil after a successful one
	breaker   *breaker.Breaker // of its crashes

	counters counters
}

// start is an attempt to start a generation, shared by all callers that need one.
type start struct {
	done chan struct{} // closed when gen or err is set
	gen  *generation
	err  error
}

func newSupervisor(life context.Context, e *executable, l *launcher, store manifestStore) *supervisor {
	s := &supervisor{
		name: e.binary.name, logger: l.options.Logger.With("plugin", e.binary.name), launcher: l, store: store, executable: e,
		draining: map[*generation]bool{}, instances: map[string]bool{}, breaker: newBreaker(time.Now),
	}
	s.life, s.end = context.WithCancel(life)
	return s
}

// add records an open instance.
func (s *supervisor) add(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instances[id] = true
}

func (s *supervisor) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.instances, id)
}

// errClosed returns the error of callers after the host has closed the plugin.
func (s *supervisor) errClosed() error {
	return tea.Errorf(tea.Canceled, "plugin %s: the host is closing", s.name)
}

// acquire admits a call to the running generation; it starts one if there is none. The
// caller ends the turn. acquire waits while a swap blocks calls.
func (s *supervisor) acquire(ctx context.Context) (*turn, error) {
	if t := joined(ctx, s); t != nil {
		return t, nil
	}
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return nil, s.errClosed()
		}
		if s.gate == nil && s.current != nil && !s.current.process.dead() {
			t := s.current.begin()
			s.mu.Unlock()
			return t, nil
		}
		ready := s.gate
		if ready == nil {
			if s.start == nil {
				s.start = &start{done: make(chan struct{})}
				go s.begin(s.start)
			}
			ready = s.start.done
		}
		attempt := s.start
		s.mu.Unlock()
		select {
		case <-ready:
		case <-ctx.Done():
			return nil, tea.AsError(ctx.Err())
		}
		if attempt == nil || ready != attempt.done {
			continue
		}
		if attempt.err != nil {
			return nil, attempt.err
		}
		if t := attempt.gen.begin(); t != nil {
			return t, nil
		}
	}
}

// begin starts a generation for all callers that wait for it.
func (s *supervisor) begin(attempt *start) {
	gen, err := s.newGeneration()
	s.mu.Lock()
	s.start = nil
	if err == nil && s.closed {
		err = s.errClosed()
	}
	extra := gen // not needed, or no longer wanted
	switch {
	case err != nil:
		gen = nil
	case s.current != nil && !s.current.process.dead(): // a swap was faster
		gen = s.current
	default:
		extra = nil
		s.install(gen)
	}
	s.mu.Unlock()
	if extra != nil {
		extra.process.stopping.Store(true)
		extra.process.kill()
	}
	attempt.gen, attempt.err = gen, err
	close(attempt.done)
}

// install makes a generation the current one. The caller holds the lock.
func (s *supervisor) install(gen *generation) {
	s.numbered++
	gen.number = s.numbered
	s.current = gen
	s.executable = gen.executable
	gen.process.evict = func(v verdict) { s.evict(gen, v) }
	s.watches.Go(func() { s.watch(gen) })
}

// replacedTries bounds the starts of versions that are replaced while they start.
const replacedTries = 5

func (s *supervisor) newGeneration() (*generation, error) {
	if gen := s.running(); gen != nil {
		s.retire(gen) // its process is dead, otherwise there would be no attempt
	}
	wait, err := restartWait(s.name, s.breaker)
	if err != nil {
		return nil, err
	}
	if backoff.Sleep(s.life, wait) != nil {
		return nil, s.errClosed()
	}
	began := time.Now()
	version := s.version()
	proc, err := s.launch(s.life, version)
	for tries := 0; errors.Is(err, errReplaced) && tries < replacedTries; tries++ {
		if version, err = s.successor(s.life, version); err == nil {
			proc, err = s.launch(s.life, version)
		}
	}
	if err != nil {
		if s.life.Err() != nil {
			return nil, s.errClosed()
		}
		s.breaker.Record(false)
		s.logger.Error("the plugin did not start", "error", err)
		return nil, err
	}
	s.logger.Debug("the plugin runs", "pid", proc.runner.ID(), "took", time.Since(began))
	return newGeneration(version, proc), nil
}

// version returns the version to start next.
func (s *supervisor) version() *executable {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.executable
}

// launch starts a process of a version. The error is a [*tea.Error]; it wraps errReplaced
// if the version's files no longer exist.
func (s *supervisor) launch(ctx context.Context, e *executable) (*process, error) {
	_ = e.hold() // on failure it runs from its target, if it has one
	command := e.command()
	if command == "" {
		return nil, startError(s.name, tea.DependencyMissing, "%s: %w", e.binary.path, errReplaced)
	}
	p, err := s.launcher.launch(ctx, s.name, e.binary.path, command, needsOf(e.manifest))
	if err == nil && !e.isStill(command) { // possibly not even when it was executed
		p.stop(context.WithoutCancel(ctx))
		return nil, startError(s.name, tea.DependencyMissing, "%s: %w", e.binary.path, errReplaced)
	}
	return p, err
}

// running returns the current generation, or nil. Its process may have died meanwhile.
func (s *supervisor) running() *generation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// watch waits for the end of a generation.
func (s *supervisor) watch(gen *generation) {
	<-gen.process.runner.exited
	s.retire(gen)
	gen.process.kill()
}

// retire takes a generation whose process has died out of service, once. An unrequested
// death counts as a crash.
func (s *supervisor) retire(gen *generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if gen.retired {
		return
	}
	gen.retired = true
	if s.current == gen {
		s.current = nil
	}
	if gen.process.stopping.Load() {
		return
	}
	if !s.draining[gen] {
		s.breaker.Record(false)
	}
	s.counters.crashed(gen.process)
	s.logger.Error("the plugin died", "reason", gen.process.ending(), "last_words", gen.process.runner.output.lastOutput())
}

// stop ends the plugin and waits until no part of it is left.
func (s *supervisor) stop(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	attempt := s.start
	s.mu.Unlock()
	s.end()
	if attempt != nil {
		<-attempt.done
	}
	s.swapping.Lock() // a swap ends with life
	defer s.swapping.Unlock()
	s.mu.Lock()
	ending := slices.Collect(maps.Keys(s.draining))
	clear(s.draining)
	if s.current != nil {
		ending = append(ending, s.current)
	}
	s.mu.Unlock()
	var stopping sync.WaitGroup
	for _, gen := range ending {
		stopping.Go(func() {
			gen.process.stop(ctx)
			gen.executable.close()
		})
	}
	stopping.Wait()
	s.watches.Wait()
	s.version().close()
}

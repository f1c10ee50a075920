package plugproc

import (
	"context"
	"log/slog"
	"sync"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/backoff"
	"github.com/the-edge-agent/tea/sdk/breaker"
)

// supervisor represents one plugin: it starts the process when it is first
// needed and after a crash. It is safe for concurrent use.
type supervisor struct {
	name   string
	logger *slog.Logger
	launch func(ctx context.Context) (*process, error)

	// life ends with stop; starts and the waits before them end with it.
	life context.Context
	end  context.CancelFunc
	// watches are the goroutines that wait for the end of generations.
	watches sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	current *generation      // takes new calls; nil if none runs
	start   *start           // in progress; nil if there is none
	breaker *breaker.Breaker // of its crashes
}

// start is an attempt to start a generation. All callers that need one wait for
// it.
type start struct {
	done chan struct{} // closed when gen or err is set
	gen  *generation
	err  error
}

func newSupervisor(name string, logger *slog.Logger, launch func(context.Context) (*process, error)) *supervisor {
	s := &supervisor{name: name, logger: logger.With("plugin", name), launch: launch, breaker: newBreaker(time.Now)}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// errClosed returns the error of callers after the host has closed the plugin.
func (s *supervisor) errClosed() error {
	return tea.Errorf(tea.Canceled, "plugin %s: the host is closing", s.name)
}

// acquire returns the running generation; it starts one if there is none.
func (s *supervisor) acquire(ctx context.Context) (*generation, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, s.errClosed()
	}
	if gen := s.current; gen != nil && !gen.process.dead() {
		s.mu.Unlock()
		return gen, nil
	}
	if s.start == nil {
		s.start = &start{done: make(chan struct{})}
		go s.begin(s.start)
	}
	attempt := s.start
	s.mu.Unlock()
	select {
	case <-attempt.done:
		return attempt.gen, attempt.err
	case <-ctx.Done():
		return nil, tea.AsError(ctx.Err())
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
	if err == nil {
		s.current = gen
		s.watches.Go(func() { s.watch(gen) })
	}
	s.mu.Unlock()
	if err != nil && gen != nil {
		gen.process.kill()
		gen = nil
	}
	attempt.gen, attempt.err = gen, err
	close(attempt.done)
}

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
	proc, err := s.launch(s.life)
	if err != nil {
		if s.life.Err() != nil {
			return nil, s.errClosed()
		}
		s.breaker.Record(false)
		s.logger.Error("the plugin did not start", "error", err)
		return nil, err
	}
	s.logger.Debug("the plugin runs", "pid", proc.runner.ID(), "took", time.Since(began))
	return newGeneration(proc), nil
}

// running returns the current generation, or nil. Its process can have died in
// the meantime.
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

// retire takes a generation whose process has died out of service, once. A
// death that was not requested counts as a crash.
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
	s.breaker.Record(false)
	s.logger.Error("the plugin died", "reason", exitText(gen.process.runner.state), "last_words", gen.process.runner.output.lastWords())
}

// stop ends the plugin and waits until no part of it is left.
func (s *supervisor) stop(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	gen, attempt := s.current, s.start
	s.mu.Unlock()
	s.end()
	if attempt != nil {
		<-attempt.done
	}
	if gen != nil {
		gen.process.stop(ctx)
	}
	s.watches.Wait()
}

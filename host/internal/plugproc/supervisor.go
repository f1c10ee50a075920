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
// needed, and again after a crash. It is safe for concurrent use.
type supervisor struct {
	name   string
	logger *slog.Logger
	launch func(ctx context.Context) (*process, error)

	// life ends with stop; starts and their waiting end with it.
	life context.Context
	end  context.CancelFunc
	// watches are the goroutines that wait for the end of generations.
	watches sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	current *generation      // the one that takes new calls; nil where none runs
	start   *start           // the start that is under way; nil where none is
	breaker *breaker.Breaker // of its crashes
}

// start is an attempt at a new generation. Everybody who needs one waits for it.
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

// errClosed is what callers get once the host has closed the plugin.
func (s *supervisor) errClosed() error {
	return tea.Errorf(tea.Canceled, "plugin %s: the host is closing", s.name)
}

// acquire returns the running generation and starts one where there is none.
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

// begin makes a generation for everybody who waits for it.
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
		s.retire(gen) // its process is dead, or nobody would ask for another
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

// running returns the current generation, or nil. Its process may have died a
// moment ago.
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
// death that nobody asked for counts as a crash.
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

// stop ends the plugin and waits until nothing of it is left.
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

package subproc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// takeOver moves the instances and the calls to the next generation.
func (s *supervisor) takeOver(ctx context.Context, next *generation) error {
	if err := next.process.wire.Health(ctx); err != nil {
		return next.fault(ctx, "health", err)
	}
	current := s.running()
	if current == nil {
		return s.route(next)
	}
	if isExclusive(current) || isExclusive(next) || current.process.wire.HandsOver() {
		return s.takeTurns(ctx, next)
	}
	if err := next.adopt(ctx, current.opened()); err != nil {
		return err
	}
	return s.route(next)
}

// swapTimeout bounds the time that calls wait during a swap.
func (s *supervisor) swapTimeout() time.Duration {
	return cmp.Or(s.launcher.limitsOf(s.name).SwapTimeout, s.launcher.options.SwapTimeout)
}

// isExclusive reports whether a generation has resources that only one process
// can use.
func isExclusive(gen *generation) bool { return len(gen.executable.manifest.Exclusive) > 0 }

// adopt configures the given instances.
func (g *generation) adopt(ctx context.Context, instances map[string]tea.Settings) error {
	for id, settings := range instances {
		if err := g.configure(ctx, id, settings); err != nil {
			return tea.Errorf(tea.AsError(err).Type, "open an instance of it: %s", reason(err))
		}
	}
	return nil
}

// route directs new calls to a generation. The previous one ends after its last call.
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
	if s.await(s.life, gen, over, "the previous version of the plugin still has calls") != nil {
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

// warnOf logs a message about the calls that run on a generation.
func (s *supervisor) warnOf(message string, gen *generation) {
	s.logger.Warn(fmt.Sprintf("%s: %s (pid %s)", message, gen.process.unanswered.String(), gen.process.runner.ID()))
}

// await waits for the end of a turn. It logs the actions that delay it.
func (s *supervisor) await(ctx context.Context, gen *generation, over <-chan struct{}, message string) error {
	late := time.NewTicker(s.swapTimeout())
	defer late.Stop()
	for {
		select {
		case <-over:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			s.warnOf(message, gen)
		}
	}
}

// takeTurns is takeOver for a plugin with a resource that only one process can use, or
// with state to hand over. Calls wait while the old process ends and the next one opens
// the resource, together at most Options.SwapTimeout. If the next one fails, the old
// version is started again.
func (s *supervisor) takeTurns(ctx context.Context, next *generation) error {
	old, err := s.quiesce(ctx)
	if err != nil {
		return err
	}
	defer s.openGate()
	if old == nil { // it has crashed
		return s.route(next)
	}
	third := s.swapTimeout() / 3
	instances := old.opened()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), third)
	defer cancel()
	states, remove, err := s.export(closing, old)
	defer remove()
	if err != nil {
		return err
	}
	old.process.stop(closing)
	s.mu.Lock()
	s.current = nil
	s.mu.Unlock()

	opening, cancel := context.WithTimeout(ctx, third)
	defer cancel()
	next.inherit(states)
	err = next.adopt(opening, instances)
	if err == nil {
		err = s.route(next)
	}
	if err != nil {
		next.process.stopping.Store(true)
		next.process.kill()
		s.restore(old.executable, instances, states)
	}
	return err
}

// export moves the states of the instances out of a generation. The caller removes their
// files. After an error the generation has its states again. If the process ends, that is
// not an error: only states that it had not written are lost.
func (s *supervisor) export(ctx context.Context, gen *generation) (states map[string]string, remove func(), err error) {
	if !gen.process.wire.HandsOver() {
		return nil, func() {}, nil
	}
	dir, err := os.MkdirTemp(s.launcher.dir.Path, "state")
	if err != nil {
		return nil, func() {}, fmt.Errorf("make a directory for its state: %w", err)
	}
	remove = func() { os.RemoveAll(dir) }
	instances := gen.opened()
	states, err = gen.export(ctx, dir)
	switch {
	case err == nil:
	case gen.process.dead():
		s.logger.Warn("the state of the plugin is lost: its process died before it was replaced", "error", reason(err))
		err = nil
	default:
		gen.inherit(states)
		err = errors.Join(err, gen.adopt(s.life, instances))
	}
	return states, remove, err
}

// quiesce waits until no call is running and blocks new ones. Long calls delay the swap,
// not other calls, which wait for at most a third of the swap's time. It returns the
// current generation, which can be nil.
func (s *supervisor) quiesce(ctx context.Context) (*generation, error) {
	const waiting = "the plugin is replaced after its running calls"
	gen := s.running()
	var over <-chan struct{}
	if gen != nil {
		over = gen.nextTurn()
	}
	for {
		if gen == nil {
			return nil, nil
		}
		if err := s.await(ctx, gen, over, waiting); err != nil {
			return nil, err
		}
		if gen, over = s.closeGate(); gen == nil {
			return nil, nil
		}
		draining, cancel := context.WithTimeout(ctx, s.swapTimeout()/3)
		err := s.await(draining, gen, over, waiting)
		cancel()
		if err == nil {
			return gen, nil
		}
		s.openGate()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		s.warnOf(waiting, gen)
	}
}

// closeGate blocks new calls and returns the current generation and the channel that is
// closed after its last call.
func (s *supervisor) closeGate() (*generation, <-chan struct{}) {
	s.mu.Lock()
	s.gate = make(chan struct{})
	attempt := s.start
	s.mu.Unlock()
	if attempt != nil {
		<-attempt.done
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return nil, nil
	}
	return s.current, s.current.endTurn()
}

// openGate allows calls on the current generation.
func (s *supervisor) openGate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil {
		s.current.nextTurn()
	}
	close(s.gate)
	s.gate = nil
}

// restore restarts a version that was ended for another one.
func (s *supervisor) restore(e *executable, instances map[string]tea.Settings, states map[string]string) {
	p, err := s.launch(s.life, e)
	if err != nil {
		if s.life.Err() == nil {
			s.logger.Error("the current version of the plugin could not be restarted", "error", err)
		}
		return
	}
	gen := newGeneration(e, p)
	gen.inherit(states)
	if err := gen.adopt(s.life, instances); err != nil { // the calls retry
		s.logger.Error("the current version of the plugin was restarted and is not ready", "error", err)
	}
	if err := s.route(gen); err != nil {
		p.stopping.Store(true)
		p.kill()
	}
}

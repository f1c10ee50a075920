package subproc

import (
	"context"
	"fmt"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
	"github.com/the-edge-agent/tea/sdk/x/wire"
)

// hangGrace is the time in which an action must end after its deadline or its
// cancellation. Otherwise the plugin's process is ended.
const hangGrace = 2 * time.Second

// evictGrace is the time in which the other calls of a process must end after one call
// does not.
const evictGrace = 30 * time.Second

// over reports whether the deadline of a context has passed. gRPC's timer can fire
// slightly before the context's.
func over(ctx context.Context) bool {
	deadline, bounded := ctx.Deadline()
	return bounded && time.Until(deadline) <= 0
}

// timeoutError returns the error of an abandoned call. After the deadline it waits until the
// plugin has also ended the call, and evicts the process if it does not. For a canceled
// call this happens in the background.
func (p *process) timeoutError(ctx context.Context, action string, late *wire.LateError) error {
	<-ctx.Done() // gRPC's timer can fire slightly earlier
	cause := tea.AsError(context.Cause(ctx))
	if cause.Type != tea.Timeout {
		go func() {
			if p.awaitEnd(late.CallID) == wire.CallRunning {
				p.evict(verdict{reason: "it did not end " + action + " within " + hangGrace.String() + " after the call was canceled, and was killed"})
			}
		}()
		return tea.AsError(late)
	}
	state := p.awaitEnd(late.CallID)
	switch {
	case p.stopping.Load():
		return tea.AsError(late)
	case p.dead():
		return p.crashed(action)
	case state == wire.CallEnded:
		return tea.AsError(late)
	}
	p.evict(verdict{reason: "it did not end " + action + " within " + hangGrace.String() + " after the call's deadline, and was killed"})
	return faultError(p.name, tea.Timeout, "%s; plugin %s did not end the call within %s after that, and its process is killed; an action must end with its context", cause.Message, p.name, hangGrace)
}

// evict takes a generation out of service because one of its calls does not end. New
// calls begin on another generation. The process is killed when its other calls have
// ended, or immediately if it has a resource that the other process needs.
func (s *supervisor) evict(gen *generation, v verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed || s.draining[gen]: // it ends already
		return
	case s.current != gen || len(gen.executable.manifest.Exclusive) > 0:
		gen.process.killBecause(v)
		return
	}
	s.current = nil
	s.draining[gen] = true
	s.breaker.Record(false)
	over := gen.endTurn()
	s.watches.Go(func() {
		limit := time.NewTimer(evictGrace)
		defer limit.Stop()
		select {
		case <-over:
		case <-limit.C:
		case <-gen.process.runner.exited:
		case <-s.life.Done():
			return // stop ends it
		}
		gen.process.killBecause(v)
		<-gen.process.runner.exited
		s.mu.Lock()
		delete(s.draining, gen)
		s.mu.Unlock()
	})
}

// awaitEnd waits until the plugin has ended a call or its process has ended, for at most
// hangGrace, and returns the last known state.
func (p *process) awaitEnd(id string) wire.CallState {
	ctx, cancel := context.WithTimeout(context.Background(), hangGrace)
	defer cancel()
	state := wire.CallUnknown
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		if answer, err := p.wire.Call(ctx, id); err == nil {
			state = answer
		}
		if p.dead() || p.stopping.Load() {
			state = wire.CallEnded
		}
		if state == wire.CallEnded || backoff.Sleep(ctx, wait) != nil {
			return state
		}
	}
}

// verdict is the reason why the host killed a process.
type verdict struct {
	reason string
	// limit is set if the process has reached a limit. Its calls are not
	// repeated, because they would reach the limit again.
	limit bool
}

// killBecause kills the process with a reason, which appears in the errors of its calls and
// in the log. It returns false if the process is already ending.
func (p *process) killBecause(v verdict) bool {
	if p.stopping.Load() || p.dead() || !p.verdict.CompareAndSwap(nil, &v) {
		return false
	}
	_ = p.runner.Kill(context.Background())
	return true
}

// killReason returns why the host, or the kernel because of a limit, killed the process;
// nil if neither did.
func (p *process) killReason() *verdict {
	if v := p.verdict.Load(); v != nil || !p.runner.outOfMemory.Load() {
		return v
	}
	return &verdict{limit: true, reason: fmt.Sprintf("it was killed at its memory limit of %s (settings.plugins.%s.memory_mb)", megabytes(p.limits.Memory), p.name)}
}

// ending describes how the process ended.
func (p *process) ending() string {
	if v := p.killReason(); v != nil {
		return v.reason
	}
	return exitText(p.runner.state)
}

package plugproc

import (
	"context"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/backoff"
	"github.com/the-edge-agent/tea/sdk/wire"
)

// hangGrace is the time that an action has to end after its deadline, or after
// it was canceled. A plugin that needs more loses its process.
const hangGrace = 2 * time.Second

// overdue returns the error of a call that was given up. At its deadline it
// waits until the plugin has ended the call too, and kills a plugin that does
// not. For a canceled call this happens in the background.
func (p *process) overdue(ctx context.Context, action string, late *wire.LateError) error {
	<-ctx.Done() // gRPC's timer can be the first by a moment
	cause := tea.AsError(context.Cause(ctx))
	if cause.Type != tea.Timeout {
		go p.endCanceled(action, late.CallID)
		return tea.AsError(late)
	}
	if state := p.awaitEnd(late.CallID); state == wire.CallEnded && !p.dead() {
		return tea.AsError(late)
	}
	if !p.condemn(verdict{reason: "it did not end " + action + " within " + hangGrace.String() + " after the call's deadline, and was killed"}) {
		if p.stopping.Load() {
			return tea.AsError(late)
		}
		return p.crashed(action)
	}
	return faultError(p.name, tea.Timeout, "%s; plugin %s did not end the call within %s after that, and was killed; an action must end with its context", cause.Message, p.name, hangGrace)
}

// endCanceled kills a plugin that says that it still works on a call that was
// canceled.
func (p *process) endCanceled(action, id string) {
	if p.awaitEnd(id) == wire.CallRunning {
		p.condemn(verdict{reason: "it did not end " + action + " within " + hangGrace.String() + " after the call was canceled, and was killed"})
	}
}

// awaitEnd waits until the plugin has ended a call or its process has ended, up
// to hangGrace, and returns the last known state.
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

// verdict is why the host has killed a process.
type verdict struct {
	reason string
	// limit is set if the process has reached a limit. Its calls are not
	// repeated: they would reach it again.
	limit bool
}

// condemn kills the process for a reason, which the errors of its calls and the
// log contain. It returns false if the process is ending anyway.
func (p *process) condemn(v verdict) bool {
	if p.stopping.Load() || p.dead() || !p.verdict.CompareAndSwap(nil, &v) {
		return false
	}
	_ = p.runner.Kill(context.Background())
	return true
}

// ending describes how the process has ended.
func (p *process) ending() string {
	if v := p.verdict.Load(); v != nil {
		return v.reason
	}
	return exitText(p.runner.state)
}

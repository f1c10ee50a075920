package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/engine/replay"
	"github.com/the-edge-agent/tea/internal/execpath"
	tea "github.com/the-edge-agent/tea/sdk"
)

// interruptInner marks a call that contains a pending interrupt; it is not reported.
const interruptInner flow.InterruptKind = "inner"

// interrupt stops the frame at an interrupt unless the interrupt was already
// passed, or an answer is given or can be asked for. The answer is journaled before
// the run continues; an object that answers a before or after interrupt is merged
// into the state.
func (f *frame) interrupt(ctx context.Context, i flow.Interrupt) (answer any, err error) {
	r := f.run
	if v, passed := r.replay.Answer(i.ID, f.void); passed {
		return v, nil
	}
	known := f.waitedAt(i.ID)
	answer, given := r.o.Answers[i.ID]
	switch {
	case given:
	case known && i.Kind != flow.InterruptAsk && len(r.o.Answers) == 0 && !r.o.Hold && !r.replay.Unreported(i.ID):
		// A resume without answers passes all pending interrupts.
	case r.o.Ask == nil:
		return nil, f.wait(i, known)
	default:
		r.clock.pause()
		answer, err = r.o.Ask(ctx, i)
		r.clock.resume()
		if errors.Is(err, flow.ErrNobody) {
			return nil, f.wait(i, known)
		} else if err != nil {
			return nil, err
		}
	}
	if err := i.Check(answer); err != nil {
		return nil, err
	}
	if values, ok := answer.(map[string]any); ok && i.Kind != flow.InterruptAsk {
		if err := f.mergeInput(execpath.Path(i.Path).Mark(string(i.Kind)), replay.Input{Values: values}); err != nil {
			return nil, err
		}
	}
	return answer, r.append(execpath.Path(i.Path), &replay.Answer{ID: i.ID, Value: answer})
}

// wait suspends the frame at an interrupt; known reports whether it was already
// recorded.
func (f *frame) wait(i flow.Interrupt, known bool) error {
	r := f.run
	if !known {
		rec := replay.NewInterrupt(i)
		if err := r.append(execpath.Path(i.Path), rec); err != nil {
			return err
		}
		r.emit(flow.EventInterrupt, i.Node, execpath.Path(i.Path), rec.Fields()...)
	}
	r.suspend(i)
	return errSuspended
}

// waitedAt reports whether the run has reached an interrupt before. It remains one
// even if the node no longer interrupts, for example without the flags with which
// the run began.
func (f *frame) waitedAt(id string) bool {
	_, known := f.run.replay.Interrupt(id, f.void)
	return known
}

// answered returns an answer from this resume or an earlier one.
func (f *frame) answered(id string) (any, bool) {
	r := f.run
	if v, ok := r.replay.Answer(id, f.void); ok {
		return v, true
	}
	v, ok := r.o.Answers[id]
	return v, ok
}

// forget drops the pending interrupts inside a scope that has ended.
func (r *run) forget(scope execpath.Path) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = slices.DeleteFunc(r.pending, func(i flow.Interrupt) bool { return execpath.Path(i.Path).Within(scope) })
}

// suspend adds a pending interrupt.
func (r *run) suspend(i flow.Interrupt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = append(r.pending, i)
	r.suspended.Store(true)
}

// Question is a question of human.ask.
type Question struct {
	Text string
	// Context and Attachments are what the person should know.
	Context     any
	Attachments []any
	Schema      any
	Choices     []any
	Default     any
	// Deadline is the time to wait; 0 = no limit.
	Deadline time.Duration
	// OnTimeout tells the person who is asked what happens after the deadline.
	OnTimeout string
}

// ErrAskTimeout reports that no answer arrived before the deadline.
var ErrAskTimeout = tea.Errorf(tea.Timeout, "no answer arrived in time")

// ask implements human.ask: an interrupt whose answer is checked first.
func (f *frame) ask(ctx context.Context, node string, path execpath.Path, q Question) (answer any, timedOut bool, err error) {
	r := f.run
	id := string(path.Mark(execpath.Ask))
	i, known := r.replay.Interrupt(id, f.void)
	if !known {
		i = flow.Interrupt{ID: id, Kind: flow.InterruptAsk, Node: node, Path: string(path), Question: q.Text, Context: q.Context, Attachments: q.Attachments, Schema: q.Schema, Choices: q.Choices, Default: q.Default, AskedAt: r.now()}
		if q.Deadline > 0 {
			i.Deadline, i.OnTimeout = i.AskedAt.Add(q.Deadline), q.OnTimeout
		}
	}
	_, answered := f.answered(id)
	if !answered && !i.Deadline.IsZero() {
		if known && !r.now().Before(i.Deadline) {
			return nil, true, nil
		}
		var stop context.CancelFunc
		ctx, stop = r.withTimeout(ctx, i.Deadline.Sub(r.now()), ErrAskTimeout)
		defer stop()
	}
	answer, err = f.interrupt(ctx, i)
	if err != nil && !errors.Is(err, errSuspended) && errors.Is(context.Cause(ctx), ErrAskTimeout) {
		return nil, true, nil
	}
	return answer, false, err
}

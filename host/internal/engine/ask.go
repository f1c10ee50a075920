package engine

import (
	"context"
	"errors"
	"time"
)

// ask is human.ask: an interrupt whose answer is checked before it counts.
func (f *frame) ask(ctx context.Context, node, path string, q Question) (answer any, timedOut bool, err error) {
	r := f.run
	id := path + ":ask"
	i := r.replay.interrupts[id]
	known := f.waitedAt(id)
	if !known {
		i = Interrupt{ID: id, Kind: InterruptAsk, Node: node, Path: path, Question: q.Text, Schema: q.Schema, Choices: q.Choices, Default: q.Default, AskedAt: r.now()}
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
		ctx, stop = context.WithTimeoutCause(ctx, time.Until(i.Deadline), ErrAskTimeout)
		defer stop()
	}
	answer, err = f.interrupt(ctx, i)
	if err != nil && !errors.Is(err, errSuspended) && errors.Is(context.Cause(ctx), ErrAskTimeout) {
		return nil, true, nil
	}
	return answer, false, err
}

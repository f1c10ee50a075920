package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/host/internal/secret"
	tea "github.com/the-edge-agent/tea/sdk"
)

// interruptInner marks a call inside of which something waits; it is not shown.
const interruptInner flow.InterruptKind = "inner"

func interruptBody(i flow.Interrupt) map[string]any {
	m := map[string]any{"id": i.ID, "kind": string(i.Kind), "node": i.Node}
	if i.Kind != flow.InterruptAsk {
		return m
	}
	m["question"] = i.Question
	m["asked_at"] = i.AskedAt.Format(time.RFC3339Nano)
	if i.Schema != nil {
		m["schema"] = i.Schema
	}
	if i.Choices != nil {
		m["choices"] = i.Choices
	}
	if i.Default != nil {
		m["default"] = i.Default
	}
	if !i.Deadline.IsZero() {
		m["deadline"], m["on_timeout"] = i.Deadline.Format(time.RFC3339Nano), i.OnTimeout
	}
	return m
}

func toInterrupt(path string, m map[string]any) flow.Interrupt {
	text := func(key string) string { s, _ := m[key].(string); return s }
	at := func(key string) time.Time { t, _ := time.Parse(time.RFC3339Nano, text(key)); return t }
	i := flow.Interrupt{
		ID: text("id"), Kind: flow.InterruptKind(text("kind")), Node: text("node"), Path: path,
		Question: text("question"), Schema: m["schema"], Default: m["default"],
		AskedAt: at("asked_at"), Deadline: at("deadline"), OnTimeout: text("on_timeout"),
	}
	i.Choices, _ = m["choices"].([]any)
	return i
}

// interrupt stops the frame at an interrupt unless it was passed earlier, is
// answered now, or somebody is there to ask. The answer is journaled before
// the run goes on; an object that answers a before or after is merged into
// the state.
func (f *frame) interrupt(ctx context.Context, i flow.Interrupt) (answer any, err error) {
	r := f.run
	if v, passed := r.replay.answers[i.ID]; passed && !r.replay.isStale(kindAnswer, i.ID, f.void) {
		return v, nil
	}
	known := f.waitedAt(i.ID)
	answer, given := r.o.Answers[i.ID]
	switch {
	case given:
	case known && i.Kind != flow.InterruptAsk && len(r.o.Answers) == 0 && !r.o.Hold && !r.replay.unseen[i.ID]:
		// A plain resume passes every interrupt that waits.
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
		if err := f.mergeInput(i.Path+":"+string(i.Kind), input{values: values}); err != nil {
			return nil, err
		}
	}
	return answer, r.append(kindAnswer, i.Path, map[string]any{"id": i.ID, "value": answer})
}

// wait notes that the run waits at an interrupt; known says that it did so
// before.
func (f *frame) wait(i flow.Interrupt, known bool) error {
	r := f.run
	if !known {
		if err := r.append(kindInterrupt, i.Path, interruptBody(i)); err != nil {
			return err
		}
		fields := interruptBody(i)
		delete(fields, "node") // the event has it
		r.emit(flow.EventInterrupt, i.Node, i.Path, fields)
	}
	r.suspend(i)
	return errSuspended
}

// waitedAt tells whether the run had come to an interrupt before: it is one
// also where the node is no place to stop at any more, as without the flags
// that the run began with.
func (f *frame) waitedAt(id string) bool {
	_, known := f.run.replay.interrupts[id]
	return known && !f.run.replay.isStale(kindInterrupt, id, f.void)
}

// answered looks for an answer from this resume or an earlier one.
func (f *frame) answered(id string) (any, bool) {
	r := f.run
	if v, ok := r.replay.answers[id]; ok && !r.replay.isStale(kindAnswer, id, f.void) {
		return v, true
	}
	v, ok := r.o.Answers[id]
	return v, ok
}

// forget drops the interrupts inside of something that has ended without them.
func (r *run) forget(scope string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = slices.DeleteFunc(r.pending, func(i flow.Interrupt) bool { return within(i.Path, scope) })
}

// suspend notes a pending interrupt.
func (r *run) suspend(i flow.Interrupt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = append(r.pending, i)
}

// Question is what human.ask asks.
type Question struct {
	Text    string
	Schema  any
	Choices []any
	Default any
	// Deadline is how long to wait; 0 = for ever.
	Deadline time.Duration
	// OnTimeout says what the asker does then, for whoever is asked.
	OnTimeout string
}

// ErrAskTimeout says that nobody answered before the deadline.
var ErrAskTimeout = tea.Errorf(tea.Timeout, "nobody answered in time")

// ask is human.ask: an interrupt whose answer is checked before it counts.
func (f *frame) ask(ctx context.Context, node, path string, q Question) (answer any, timedOut bool, err error) {
	r := f.run
	id := path + ":ask"
	i := r.replay.interrupts[id]
	known := f.waitedAt(id)
	if !known {
		i = flow.Interrupt{ID: id, Kind: flow.InterruptAsk, Node: node, Path: path, Question: q.Text, Schema: q.Schema, Choices: q.Choices, Default: q.Default, AskedAt: r.now()}
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

// Pending lists the interrupts in a run's records that wait for an answer, by
// id: not those of a node that has ended without one, by its time-out for
// instance. Secrets are those of the run.
func Pending(records []checkpoint.Record, secrets *secret.Set) ([]flow.Interrupt, error) {
	var waits []checkpoint.Record
	for _, rec := range records {
		switch rec.Kind {
		case kindInterrupt, kindAnswer:
			waits = append(waits, rec)
		case kindNode, kindBranch:
			waits = slices.DeleteFunc(waits, func(w checkpoint.Record) bool { return within(w.Path, rec.Path) })
		}
	}
	p, err := newReplay(waits, secrets, false)
	if err != nil {
		return nil, err
	}
	var pending []flow.Interrupt
	for id, i := range p.interrupts {
		if _, answered := p.answers[id]; !answered {
			pending = append(pending, i)
		}
	}
	slices.SortFunc(pending, func(a, b flow.Interrupt) int { return cmp.Compare(a.ID, b.ID) })
	return pending, nil
}

// within reports whether a path is that of something or of a part of it: of a
// node in a branch, a pass, an item or a subgraph, or of a call.
func within(path, scope string) bool {
	rest, ok := strings.CutPrefix(path, scope)
	return ok && (rest == "" || strings.ContainsRune(pathBorders, rune(rest[0])))
}

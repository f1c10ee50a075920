package guard

import (
	"context"

	tea "github.com/the-edge-agent/tea/sdk"
)

// mark is a durable note of a call that says what became of its write. It makes a
// write happen at most once: in retries, after a crash of the plugin, and after a power
// cut, when the host repeats the call.
type mark struct {
	req *tea.Request
	w   Write
	key string // "" without marks
}

// content is the content of the note.
type content struct {
	// State is sending from before the write until its end is known.
	State string `json:"state"`
	// Result is the result of a write that was sent.
	Result any `json:"result,omitempty"`
}

const (
	stateSending = "sending"
	stateSent    = "sent"
	stateNone    = "none"
)

// unknownEffect is the type of the error of a write that may have happened before.
const unknownEffect tea.ErrorType = "effect_unknown"

// newMark returns the mark of a call; without a run there is none.
func newMark(req *tea.Request, w Write) *mark {
	m := &mark{req: req, w: w}
	if req.IdempotencyKey != "" && !w.Rule.Repeatable {
		m.key = "write-" + req.IdempotencyKey
	}
	return m
}

// find reports whether an earlier attempt has succeeded, and returns its result. The
// error is an unknownEffect if it is not known what an earlier attempt did.
func (m *mark) find(ctx context.Context, result any) (done bool, err error) {
	if m.key == "" {
		return false, nil
	}
	note, found, err := m.req.Host.Note(ctx, m.key)
	if err != nil || !found {
		return false, err
	}
	old := content{Result: result}
	if err := note.Decode(&old); err != nil {
		return false, err
	}
	switch old.State {
	case stateSent:
		return true, tea.ValuePayload(old.Result).Decode(result)
	case stateSending:
		return false, Unknown(tea.Errorf(unknownEffect, "an earlier attempt to write to %s was interrupted; look at the machine, or set %s.repeatable if the write does no harm twice", m.w.Target, m.w.Setting))
	}
	return false, nil
}

// send marks the write, makes it and marks its end.
func (m *mark) send(ctx context.Context, result any, send func(ctx context.Context) error) error {
	if m.key == "" {
		return send(ctx)
	}
	if err := m.req.Host.SetNote(ctx, m.key, content{State: stateSending}); err != nil {
		return NotSent(err)
	}
	err := send(ctx)
	// The call may have ended, and its end is worth a note all the same.
	ctx = context.WithoutCancel(ctx)
	switch {
	case err == nil:
		// Without this note the outcome of a repeated call is unknown, which is safe.
		_ = m.req.Host.SetNote(ctx, m.key, content{stateSent, result})
	case tea.AsError(err).Details[effect] != "unknown":
		_ = m.req.Host.SetNote(ctx, m.key, content{State: stateNone})
	}
	return err
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/the-edge-agent/tea/host/internal/engine/replay"
	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/internal/execpath"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// effectNote is the key of the durable note of a call whose effect must happen at most
// once: an object with the member state, and result if the call succeeded.
const effectNote = "tea:effect"

// The states of an effect. A call that ends without effect is unsent.
const (
	effectBegun  = "begun"
	effectUnsent = "unsent"
	effectDone   = "done"
)

// happensOnce reports whether the effect of a call must happen at most once. A node can require it for its calls, a
// manifest for all calls of an action.
func (x *execution) happensOnce(name string, deep int) bool {
	if x.node.Spec.Once && deep == x.frame.calls {
		return true
	}
	info, ok := x.frame.run.o.Actions.Describe(name)
	return ok && info.Once
}

// invokeMarked is [execution.invokeOnce] for a call whose effect must happen at most once: a durable note is written
// before it and after it. If only the first one exists, the outcome is unknown. The notes have the path without
// attempts, so that a retry of a container does not repeat the effect.
func (x *execution) invokeMarked(ctx context.Context, name string, params tea.Payload, path execpath.Path, deep int, outer *meter) (*tea.Response, *meter, error) {
	at := path.WithoutAttempts()
	state, result := x.effect(at)
	if state == effectDone {
		return tea.Respond(result), &meter{outer: outer}, nil
	}
	var cause error = tea.Errorf(tea.PluginCrashed, "the run was stopped or killed during the call")
	for settled := false; ; {
		if state == effectBegun {
			if settled {
				return nil, nil, x.fail(name, cause)
			}
			settled = true
			happened, result, err := x.settle(ctx, name, params, path, cause)
			if err != nil {
				return nil, nil, err
			}
			if happened {
				return tea.Respond(result), &meter{outer: outer}, x.setEffect(at, effectDone, result)
			}
		}
		if err := x.setEffect(at, effectBegun, nil); err != nil {
			return nil, nil, err
		}
		res, spent, err := x.invokeOnce(ctx, name, params, path, deep, outer, x.attempt, true)
		switch {
		case err == nil:
			v, _ := res.Result.Shared() // the caller reports an error
			return res, spent, x.setEffect(at, effectDone, v)
		case errors.Is(err, errSuspended), isKnown(err):
			if failed := x.setEffect(at, effectUnsent, nil); failed != nil {
				err = failed
			}
			return nil, nil, err
		case ctx.Err() != nil:
			return nil, nil, x.fail(name, err)
		}
		state, cause = effectBegun, err
	}
}

// effect returns the state of the effect at a path, "" if there is none, and the result.
func (x *execution) effect(at execpath.Path) (state string, result any) {
	note := x.effectNote(at)
	state, _ = note["state"].(string)
	return state, note["result"]
}

// effectTries returns the number of times that the effect at a path was begun.
func (x *execution) effectTries(at execpath.Path) uint32 {
	n, _ := x.effectNote(at)["tries"].(int64)
	return uint32(n) //nolint:gosec // written by this package, and small
}

func (x *execution) effectNote(at execpath.Path) map[string]any {
	r := x.frame.run
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.notes[noteName{at, effectNote}]
	if !ok {
		v, _ = r.replay.Note(at, effectNote, 0)
	}
	note, _ := v.(map[string]any)
	return note
}

// setEffect records the state of an effect. The beginning is on disk on return.
func (x *execution) setEffect(at execpath.Path, state string, result any) error {
	r := x.frame.run
	note := map[string]any{"state": state, "tries": int64(x.effectTries(at))}
	if state == effectBegun {
		note["tries"] = int64(x.effectTries(at)) + 1
	}
	if result != nil {
		note["result"] = result
	}
	if err := r.append(at, &replay.Note{Key: effectNote, Value: note}); err != nil {
		return err
	}
	if j := r.o.Journal; j != nil && state == effectBegun {
		if err := j.Sync(); err != nil {
			return &journalError{err}
		}
	}
	r.setNote(noteName{at, effectNote}, note)
	return nil
}

// isKnown reports whether the outcome of a call with this error is known: it had no effect, or the action reports the
// effect. The details can have not_sent, true or false, if the type leaves it open (see [tea.Error.NotSent]), and
// outcome_known.
func isKnown(err error) bool {
	var e *tea.Error
	if !errors.As(err, &e) {
		return false
	}
	if e.Details["outcome_known"] == true {
		return true
	}
	if notSent, ok := e.Details["not_sent"]; ok {
		return notSent == true
	}
	switch e.Type {
	case tea.ValidationError, tea.NotFound, tea.PermissionDenied, tea.DependencyMissing, tea.RateLimited, tea.CircuitOpen, tea.BudgetExceeded:
		return true
	}
	return false
}

// settle decides on a call with an unknown outcome as the node requires: whether the effect happened, and with what
// result.
func (x *execution) settle(ctx context.Context, name string, params tea.Payload, path execpath.Path, cause error) (happened bool, result any, err error) {
	switch x.node.Spec.OnUnknown {
	case spec.OnUnknownRepeat:
		return false, nil, nil
	case spec.OnUnknownAsk:
		const yes, no = "it happened", "repeat it"
		// Each time is another question.
		answer, _, err := x.frame.ask(ctx, x.node.Name, path.Call("effect", x.effectTries(path.WithoutAttempts())), Question{
			Text: fmt.Sprintf("Did %s of node %q happen? Its parameters are %s. The outcome is unknown: %s", name, x.node.Name, shownParams(params), asFailure(cause).Message), Choices: []any{yes, no},
		})
		return answer == yes, nil, err
	case spec.OnUnknownVerify:
		if x.node.Verify != nil {
			return x.verify(ctx, path, x.node.Verify)
		}
	}
	return false, nil, x.fail(name, cause)
}

// maxShown is the maximum size in bytes of a parameter in a question.
const maxShown = 500

// shownParams returns the parameters of a call for a question. A long one is replaced by
// its size and not cut, since a part of a secret would not be masked.
func shownParams(params tea.Payload) string {
	v, _ := params.Shared() // they were checked
	given, _ := v.(map[string]any)
	shown := make(map[string]any, len(given))
	for name, v := range given {
		text, err := value.Encode(v)
		if shown[name] = v; err != nil || len(text) > maxShown {
			shown[name] = fmt.Sprintf("(%d bytes)", len(text))
		}
	}
	text, _ := value.Encode(shown)
	return string(text)
}

// verify calls the action that finds out whether an effect happened.
func (x *execution) verify(ctx context.Context, path execpath.Path, v *graph.Verify) (happened bool, result any, err error) {
	var params any = x.frame.run.empty
	if v.Call.With != nil {
		if params, err = v.Call.With.Eval(ctx, x.scope(nil)); err != nil {
			return false, nil, err
		}
	}
	res, spent, err := x.invokeOnce(ctx, v.Call.Uses, tea.ValuePayload(params), path.Call(v.Call.Uses, 0), x.frame.calls, &x.trying, x.attempt, false)
	if err == nil {
		result, err = res.Result.Value()
	}
	if err != nil {
		return false, nil, err
	}
	x.frame.run.spend(spent, result)
	happened, err = x.frame.holds(ctx, v.If, result)
	return happened, result, err
}

// fail makes the node fail, whatever its action makes of the error.
func (x *execution) fail(name string, cause error) error {
	e := asFailure(cause)
	remedy := "check it, and decide with on_unknown: ask, verify or repeat"
	if on := x.node.Spec.OnUnknown; on != "" && on != spec.OnUnknownFail {
		remedy = fmt.Sprintf("a resume decides with on_unknown: %s", on)
	}
	failed := tea.Errorf(tea.UnknownOutcome, "it is unknown whether %s had its effect: %s; %s", name, e.Message, remedy)
	failed.Source, failed.Details = e.Source, map[string]any{"cause": string(e.Type)}
	maps.Copy(failed.Details, e.Details)
	x.unknown.Store(failed)
	return failed
}

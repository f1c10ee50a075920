package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Fits walks what is recorded through a workflow that has changed since,
// without running or writing anything: a validation_error where a recorded
// decision leads nowhere, or a recorded node is not met on the way.
func Fits(ctx context.Context, o Options) error {
	o.Journal, o.Events, o.Callbacks = nil, nil, flow.Callbacks{}
	r := &run{o: o, seen: map[string]bool{}, noParams: map[string]any{}}
	var err error
	if r.replay, err = newReplay(o.Replay, o.Secrets, o.RetryFailed); err != nil {
		return err
	}
	root, err := r.begin()
	if err != nil {
		return err
	}
	root.replayOnly = true
	ctx, r.cancel = context.WithCancelCause(ctx)
	defer r.cancel(nil)
	if err := root.walk(ctx); err != nil && !errors.Is(err, errReplayed) {
		return err
	}
	var lost []string
	for path := range r.replay.nodes {
		// Attempts before the last one are recorded, but not walked again.
		if !r.seen[path] && withoutAttempts(path) == path && !r.replay.retried(path) {
			lost = append(lost, path)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	slices.Sort(lost)
	return tea.Errorf(tea.ValidationError, "the changed workflow no longer reaches %s, which the checkpoint contains", strings.Join(lost[:min(5, len(lost))], ", "))
}

// saw notes that a recorded path was walked.
func (r *run) saw(path string) {
	if r.seen == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[path] = true
}

// retried tells whether a path is inside something that was tried again.
func (p *replay) retried(path string) bool {
	for at := range p.attempts {
		if strings.HasPrefix(path, at+"/") || strings.HasPrefix(path, at+"[") || strings.HasPrefix(path, at+">") {
			return true
		}
	}
	return false
}

// StateAt gives the state that the records of a run lead to, without running
// or writing anything. What a branch, a loop or a subgraph that has not ended
// there did so far is not in it.
func StateAt(ctx context.Context, o Options) (map[string]any, error) {
	o.Journal, o.Events, o.Callbacks = nil, nil, flow.Callbacks{}
	r := &run{o: o}
	var err error
	if r.replay, err = newReplay(o.Replay, o.Secrets, o.RetryFailed); err != nil {
		return nil, err
	}
	root, err := r.begin()
	if err != nil {
		return nil, err
	}
	root.replayOnly = true
	ctx, r.cancel = context.WithCancelCause(ctx)
	defer r.cancel(nil)
	var ended *flow.NodeError
	if err := root.walk(ctx); err != nil && !errors.Is(err, errReplayed) && !errors.As(err, &ended) {
		return nil, err
	}
	return root.state.Values(), nil
}

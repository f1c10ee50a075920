package engine

import (
	"context"
	"errors"
	"strings"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/engine/replay"
	"github.com/the-edge-agent/tea/internal/execpath"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Fits walks the records through a changed workflow, without running or writing
// anything. The error is a validation_error if a recorded decision leads nowhere
// or a recorded node is not reached.
func Fits(ctx context.Context, o Options) error {
	o.Journal, o.Events, o.Callbacks = nil, nil, flow.Callbacks{}
	r := &run{o: o, seen: map[execpath.Path]bool{}, empty: map[string]any{}}
	var err error
	if r.replay, err = replay.New(o.Replay, o.Secrets, o.RetryFailed); err != nil {
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
	lost := r.replay.Left(r.seen)
	if len(lost) == 0 {
		return nil
	}
	return tea.Errorf(tea.ValidationError, "the changed workflow no longer reaches %s, which the checkpoint contains", brief(lost))
}

// brief names the first few paths.
func brief(paths []execpath.Path) string {
	names := make([]string, min(5, len(paths)))
	for i := range names {
		names[i] = string(paths[i])
	}
	return strings.Join(names, ", ")
}

// markWalked marks a recorded path as walked, and whether the paths inside it are walked.
func (r *run) markWalked(path execpath.Path, inside bool) {
	if r.seen == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[path] = inside
}

// StateAt returns the state after the records of a run, without running or writing
// anything. It does not include updates of a branch, a loop or a subgraph that has
// not ended there.
func StateAt(ctx context.Context, o Options) (map[string]any, error) {
	o.Journal, o.Events, o.Callbacks = nil, nil, flow.Callbacks{}
	r := &run{o: o}
	var err error
	if r.replay, err = replay.New(o.Replay, o.Secrets, o.RetryFailed); err != nil {
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

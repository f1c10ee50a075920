package engine

import (
	"context"
	"errors"
)

// StateAt gives the state that the records of a run lead to, without running
// or writing anything. What a branch, a loop or a subgraph that has not ended
// there did so far is not in it.
func StateAt(ctx context.Context, o Options) (map[string]any, error) {
	o.Journal, o.Events, o.Callbacks = nil, nil, Callbacks{}
	r := &run{o: o}
	r.breakers.init(r)
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
	var ended *NodeError
	if err := root.walk(ctx); err != nil && !errors.Is(err, errReplayed) && !errors.As(err, &ended) {
		return nil, err
	}
	return root.state.Values(), nil
}

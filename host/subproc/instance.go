package subproc

import (
	"context"

	tea "github.com/the-edge-agent/tea/sdk"
)

// instance is a plugin for one set of settings. It outlives the plugin's process: after
// a crash or a swap it is configured in the next one. It is safe for concurrent use.
type instance struct {
	id         string
	settings   tea.Settings
	manifest   tea.Manifest
	supervisor *supervisor
}

// Invoke calls an action and starts the plugin if it is not running. The error is a
// [*tea.Error]: the action's own, plugin_crashed if the process died, circuit_open if it
// died too often, dependency_missing if it cannot be started, timeout or canceled with
// ctx. Invoke does not retry: the engine decides whether to repeat a call that ended
// with a crash.
func (i *instance) Invoke(ctx context.Context, req *tea.Request) (*tea.Response, error) {
	action := i.manifest.Find(req.Action)
	if action == nil && !i.manifest.IsDynamic(req.Action) {
		return nil, tea.Errorf(tea.NotFound, "plugin %s has no action %s", i.manifest.Name, req.Action)
	}
	ended := i.supervisor.counters.call()
	resp, err := i.invoke(ctx, req, action == nil || action.Streaming)
	ended(err)
	return resp, err
}

func (i *instance) invoke(ctx context.Context, req *tea.Request, streaming bool) (*tea.Response, error) {
	turn, err := i.supervisor.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer turn.end()
	gen := turn.generation
	if err := gen.configure(ctx, i.id, i.settings); err != nil {
		return nil, err
	}
	open := &gen.process.unanswered
	open.add(req.Action, 1)
	resp, err := gen.process.wire.Invoke(turn.within(ctx, i.supervisor), i.id, req, streaming)
	if ctx.Err() == nil { // otherwise the plugin can still be working on it
		open.add(req.Action, -1)
	}
	if err != nil {
		return nil, gen.fault(ctx, req.Action, err)
	}
	return resp, nil
}

// Close releases the instance in the plugin's process. Its calls must have
// ended. Close does not start a plugin.
func (i *instance) Close() error {
	i.supervisor.remove(i.id)
	gen := i.supervisor.running()
	if gen == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), defaultGrace)
	defer cancel()
	return gen.release(ctx, i.id)
}

package catalog

import (
	"context"
	"log/slog"

	"github.com/the-edge-agent/tea/host/internal/script"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Module opens a Lua module's actions. Each is called with the state of the
// node that calls it.
func Module(namespace string, m *script.Module, variables map[string]any) Opener {
	return func(context.Context, map[string]any) (Invoker, error) {
		return &module{namespace: namespace, module: m, variables: variables, params: paramsOf(m)}, nil
	}
}

type module struct {
	namespace string
	module    *script.Module
	variables map[string]any
	params    map[string]*moduleParams
}

// stateReader is a host that shows the state of the calling node.
type stateReader interface{ State() map[string]any }

// Invoke calls the Lua function.
func (m *module) Invoke(ctx context.Context, req *tea.Request) (*tea.Response, error) {
	v, err := req.Params.Shared()
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "parameters of %s: %w", req.Action, err)
	}
	name := req.Action[len(m.namespace)+1:]
	params, err := m.params[name].accept(req.Action, v)
	if err != nil {
		return nil, err
	}
	env := script.Env{
		Globals: map[string]any{"variables": m.variables},
		Action: func(ctx context.Context, name string, params any) (any, error) {
			res, err := req.Host.Invoke(ctx, name, params)
			if err != nil {
				return nil, err
			}
			return res.Result.Value()
		},
		Log: func(level slog.Level, message string, fields map[string]any) {
			req.Host.Log(ctx, level, message, fields)
		},
	}
	if host, ok := req.Host.(stateReader); ok {
		env.State = host.State()
	}
	result, err := m.module.Call(ctx, name, env, params)
	if err != nil {
		return nil, err
	}
	return &tea.Response{Result: tea.ValuePayload(result)}, nil
}

// Close does nothing: the module belongs to the runtime.
func (m *module) Close() error { return nil }

package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/the-edge-agent/tea/host/internal/script"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/x/jsonschema"
)

// Module returns the opener of a Lua module's actions. An action gets the state
// of the calling node and can require modules.
func Module(namespace string, m *script.Module, variables map[string]any, modules map[string]*script.Module) Opener {
	return func(context.Context, map[string]any) (Invoker, error) {
		return &module{namespace: namespace, module: m, variables: variables, modules: modules}, nil
	}
}

// ModuleManifest returns the manifest of a module's actions under a namespace.
// It omits invalid schemas of the module's metadata and reports them in the
// error.
func ModuleManifest(namespace, path string, m *script.Module) (tea.Manifest, error) {
	manifest := tea.Manifest{Name: path, Protocol: tea.ProtocolVersion}
	var problems []error
	read := func(action, part string, about map[string]any) *schema.Schema {
		if about == nil {
			return nil
		}
		_, err := jsonschema.Compile(about)
		s := new(schema.Schema)
		if err == nil {
			err = tea.ValuePayload(about).Decode(s)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s of %s: %w", part, action, err))
			return nil
		}
		return s
	}
	for _, a := range m.Actions() {
		manifest.Actions = append(manifest.Actions, tea.ActionInfo{
			Name: namespace + "." + a.Name, Summary: a.Description, Reads: true, Params: read(a.Name, "params", a.Params), Result: read(a.Name, "result", a.Result),
		})
	}
	return manifest, errors.Join(problems...)
}

type module struct {
	namespace string
	module    *script.Module
	variables map[string]any
	modules   map[string]*script.Module
}

// stateReader is a host that provides the state of the calling node.
type stateReader interface{ State() map[string]any }

// Invoke calls the Lua function.
func (m *module) Invoke(ctx context.Context, req *tea.Request) (*tea.Response, error) {
	v, err := req.Params.Shared()
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "parameters of %s: %w", req.Action, err)
	}
	params, _ := v.(map[string]any) // checked by the catalog
	name := req.Action[len(m.namespace)+1:]
	env := script.Env{
		Globals: script.Values{"variables": m.variables}, Modules: m.modules,
		Action: func(ctx context.Context, name string, params any) (any, error) {
			res, err := req.Host.Invoke(ctx, name, params)
			if err != nil {
				return nil, err
			}
			return res.Result.Shared() // Lua gets a copy
		},
		Log: func(level slog.Level, message string, fields map[string]any) {
			req.Host.Log(ctx, level, message, fields)
		},
	}
	if host, ok := req.Host.(stateReader); ok {
		env.State = host.State()
	}
	if host, ok := req.Host.(interface{ LuaSteps() int }); ok {
		env.Steps = host.LuaSteps()
	}
	result, err := m.module.Call(ctx, name, env, params)
	if err != nil {
		return nil, err
	}
	return &tea.Response{Result: tea.ValuePayload(result)}, nil
}

// Close does nothing: the module belongs to the runtime.
func (m *module) Close() error { return nil }

//go:build noplugins

package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/the-edge-agent/tea/host"
	tea "github.com/the-edge-agent/tea/sdk"
)

// discover finds no plugins: this build cannot run them.
func (a *app) discover(flags pluginFlags, _ *slog.Logger, _ bool) (*pluginSet, error) {
	if len(flags.Plugins) > 0 {
		return nil, errors.New("this tea was built without plugin processes; leave --plugins out or take the full build")
	}
	return &pluginSet{Plugins: noProcesses{}}, nil
}

// noProcesses are no plugins.
type noProcesses struct{}

func (noProcesses) Manifests() []tea.Manifest { return nil }

func (noProcesses) Open(_ context.Context, bundle string, _ tea.Settings) (host.Invoker, error) {
	return nil, tea.Errorf(tea.NotFound, "there is no plugin %s", bundle)
}

func (noProcesses) Close() error { return nil }

//go:build !noplugins

package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/subproc"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/diag"
)

// discover looks for plugins. The caller closes the set.
func (a *app) discover(flags pluginFlags, log *slog.Logger) (*pluginSet, error) {
	provider, problems, err := subproc.Discover(context.Background(), subproc.Options{Dirs: flags.Plugins, Logger: log})
	if err != nil {
		return nil, err
	}
	set := &pluginSet{Plugins: processes{provider}}
	for _, b := range provider.Bundles() {
		set.found = append(set.found, foundPlugin{b.Manifest, b.Path})
	}
	for _, p := range problems {
		set.problems = append(set.problems, pluginProblem{p.Path, p.Message, p.Severity == diag.Error})
	}
	return set, nil
}

// processes gives a host the plugins of a provider.
type processes struct{ provider subproc.Provider }

// Manifests describes the plugins there are.
func (p processes) Manifests() []tea.Manifest {
	var manifests []tea.Manifest
	for _, b := range p.provider.Bundles() {
		manifests = append(manifests, b.Manifest)
	}
	return manifests
}

// Open gives an instance of a plugin.
func (p processes) Open(ctx context.Context, bundle string, settings tea.Settings) (host.Invoker, error) {
	return p.provider.Open(ctx, bundle, settings)
}

// pluginGrace is how long plugins have to end when tea does.
const pluginGrace = 2 * time.Second

// Close ends the plugins.
func (p processes) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), pluginGrace)
	defer cancel()
	return p.provider.Close(ctx)
}

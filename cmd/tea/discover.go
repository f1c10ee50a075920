//go:build !noplugins

package main

import (
	"context"
	"log/slog"

	"github.com/the-edge-agent/tea/host/subproc"
	"github.com/the-edge-agent/tea/sdk/diag"
)

// discover looks for plugins; askAgain starts also those that gave no answer
// a short while ago. The caller closes the set.
func (a *app) discover(flags pluginFlags, log *slog.Logger, askAgain bool) (*pluginSet, error) {
	plugins, problems, err := subproc.Discover(context.Background(), subproc.Options{Dirs: flags.Plugins, Logger: log, AskAgain: askAgain})
	if err != nil {
		return nil, err
	}
	set := &pluginSet{Plugins: plugins}
	for _, b := range plugins.Bundles() {
		set.found = append(set.found, foundPlugin{b.Manifest, b.Path})
	}
	for _, p := range problems {
		set.problems = append(set.problems, pluginProblem{p.Path, p.Message, p.Severity == diag.Error})
	}
	return set, nil
}

// Package subproc adds action plugins that run as processes of their own to a
// host. A host that does not import it links no gRPC.
//
// Start with [Discover].
package subproc

import (
	"context"
	"os"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/host/internal/plugproc"
)

// Options say where plugins are and how they are run.
type Options = plugproc.Options

// Problem is something wrong in a plugin directory that does not stop the
// other plugins.
type Problem = plugproc.Problem

// Bundle is a plugin that was found.
type Bundle = plugproc.Found

// Provider gives a host the bundles of plugin processes. It is safe for
// concurrent use.
type Provider interface {
	// Bundles lists the plugins in the order in which they were found. It
	// starts nothing.
	Bundles() []Bundle
	// Open gives an instance of a bundle for a workflow's settings. The
	// plugin starts with the instance's first call.
	Open(ctx context.Context, bundle string, settings tea.Settings) (Instance, error)
	// Close ends all plugins, gracefully within ctx, and then by force.
	Close(ctx context.Context) error
}

// Instance calls the actions of a bundle for one set of settings.
type Instance interface {
	// Invoke calls an action; its error is a [*tea.Error].
	Invoke(ctx context.Context, req *tea.Request) (*tea.Response, error)
	// Close lets go of the instance. Its calls must have ended.
	Close() error
}

// Discover finds the plugins in the directories of the options and in the
// standard places behind them. The caller closes the provider.
func Discover(ctx context.Context, o Options) (Provider, []Problem, error) {
	o.Dirs = plugproc.SearchPath(o.Dirs, os.Getenv)
	set, problems, err := plugproc.Discover(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	return provider{set}, problems, nil
}

type provider struct{ *plugproc.Set }

func (p provider) Open(ctx context.Context, bundle string, settings tea.Settings) (Instance, error) {
	inst, err := p.Set.Open(ctx, bundle, settings)
	if err != nil {
		return nil, err
	}
	return inst, nil
}

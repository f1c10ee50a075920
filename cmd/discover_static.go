//go:build noplugins

package teacmd

import (
	"context"
	"errors"
	"log/slog"

	"github.com/the-edge-agent/tea/host"
	tea "github.com/the-edge-agent/tea/sdk"
)

// runsPlugins reports whether this build runs plugins. This one does not, and
// ignores the machine's plugin settings, which are for other builds.
const runsPlugins = false

var errNoProcesses = errors.New("this tea was built without plugin processes")

// discover finds no plugins: this build cannot run them.
func (a *app) discover(flags pluginFlags, _ *slog.Logger, _ pluginUse) (*pluginSet, error) {
	if len(flags.Plugins) > 0 {
		return nil, pluginError(errors.New(errNoProcesses.Error() + "; omit --plugins or use the full build"))
	}
	return &pluginSet{processes: noProcesses{}}, nil
}

// bundleCmds are the commands for bundles, which this build does not include.
type bundleCmds struct{}

func (a *app) addInstalled(*pluginSet) error { return nil }

// Run stores the actions that depend on settings: this build has no plugin
// processes.
func (c *pluginRefreshCmd) Run(a *app) error {
	if c.Workflow == "" {
		return pluginError(errNoProcesses)
	}
	a.setReport(c.reportFlags)
	return c.refreshDynamic(a)
}

func (*pluginStatusCmd) Run(*app) error { return pluginError(errNoProcesses) }

func pluginStatus(processes) any { return []any{} }

func runningRows(string) [][]string { return nil }

func (*pluginTrustCmd) Run(*app) error { return pluginError(errNoProcesses) }

func (*pluginTestCmd) Run(*app) error { return pluginError(errNoProcesses) }

func (*pluginDocsCmd) Run(*app) error { return pluginError(errNoProcesses) }

func (*pluginDevCmd) Run(*app) error { return pluginError(errNoProcesses) }

// noProcesses is an empty set of plugins.
type noProcesses struct{}

func (noProcesses) Manifests() []tea.Manifest { return nil }

func (noProcesses) Unread() []string { return nil }

func (noProcesses) Learn(context.Context, ...string) error { return nil }

func (noProcesses) Limit(map[string]any) {}

func (noProcesses) Open(_ context.Context, bundle string, _ tea.Settings) (host.Invoker, error) {
	return nil, tea.Errorf(tea.NotFound, "plugin %s not found", bundle)
}

func (noProcesses) Replace(context.Context) (int, error) { return 0, nil }

func (noProcesses) Watch(context.Context) {}

func (noProcesses) Close() error { return nil }

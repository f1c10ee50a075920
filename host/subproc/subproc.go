// Package subproc adds action plugins that run as separate processes to a host.
// A host that does not import it links no gRPC.
//
// Start with [Discover].
package subproc

import (
	"context"
	"os"
	"time"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/internal/plugproc"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Options configure the search for plugins and their processes.
type Options = plugproc.Options

// Problem is a fault in a plugin directory that does not stop the other
// plugins.
type Problem = plugproc.Problem

// Bundle is a plugin that was found.
type Bundle = plugproc.Found

// Unread is a plugin whose manifest is not known, with the reason.
type Unread = plugproc.Unread

// Asked is the answer of a plugin to the question for its manifest.
type Asked = plugproc.Asked

// Swap is the result of replacing one plugin.
type Swap = plugproc.Swap

// HostStatus is a running host and the plugins in it.
type HostStatus = plugproc.HostStatus

// Status is a plugin in a running host.
type Status = plugproc.Status

// Hosts returns the status of this user's running hosts that have started a
// plugin, in any process, the oldest first.
func Hosts(ctx context.Context) []HostStatus { return plugproc.Hosts(ctx) }

// Trust is a user's list of trusted plugin directories.
type Trust = plugproc.Trust

// UserTrust returns the list that [Discover] uses.
func UserTrust() Trust { return plugproc.UserTrust(os.Getenv) }

// Environ returns the environment in which a host starts a plugin that declares
// the variables.
func Environ(declared []string) []string { return plugproc.Environ(declared) }

// Plugins are the plugins of one host, for [host.Options]. The host closes the
// plugins that it is given. They are safe for concurrent use.
type Plugins struct{ set *plugproc.Set }

var (
	_ host.Plugins = (*Plugins)(nil)
	_ host.Learner = (*Plugins)(nil)
	_ host.Limiter = (*Plugins)(nil)
)

// Discover finds the plugins in the directories of the options, in those of
// TEA_PLUGINS, in ./plugins if the user trusts it, and in the standard places,
// and reads their stored manifests. It starts nothing. The problems are those
// of single files; the error is that of ctx, or a *fs.PathError about a
// directory that was named. The caller closes the plugins, or passes them to a
// host.
func Discover(ctx context.Context, o Options) (*Plugins, []Problem, error) {
	set, problems, err := plugproc.Discover(ctx, o.Search(os.Getenv))
	if err != nil {
		return nil, nil, err
	}
	return &Plugins{set}, problems, nil
}

// Bundles lists the plugins whose manifests are known, with their files, in the
// order in which they were found.
func (p *Plugins) Bundles() []Bundle { return p.set.Bundles() }

// Status lists the plugins that were called, with their processes.
func (p *Plugins) Status() []Status { return p.set.Status() }

// Manifests returns the manifests of the same plugins in the same order.
func (p *Plugins) Manifests() []tea.Manifest {
	bundles := p.set.Bundles()
	manifests := make([]tea.Manifest, len(bundles))
	for i, b := range bundles {
		manifests[i] = b.Manifest
	}
	return manifests
}

// Unread names the plugins whose manifests are not known.
func (p *Plugins) Unread() []string {
	var names []string
	for _, u := range p.set.Unread() {
		names = append(names, u.Name)
	}
	return names
}

// UnreadBundles lists the plugins whose manifests are not known.
func (p *Plugins) UnreadBundles() []Unread { return p.set.Unread() }

// Learn starts the plugins without a known manifest, all or the named ones, and
// asks for it. The error joins a [Problem] for each plugin that cannot be used.
func (p *Plugins) Learn(ctx context.Context, bundles ...string) error {
	return p.set.Learn(ctx, bundles...)
}

// Refresh starts all plugins, or the named ones, and stores their manifests in
// the user's cache, and next to the binaries if beside is true.
func (p *Plugins) Refresh(ctx context.Context, beside bool, bundles ...string) []Asked {
	return p.set.Refresh(ctx, beside, bundles...)
}

// Reload searches the directories again, adds new plugins, and replaces those
// whose files have changed, all or the named ones, while workflows run: new
// calls go to the new version, running calls end on the old one. A version that
// is broken, or not compatible with what workflows were checked with, does not
// replace the present one; [Swap.Err] says why, and so does the log. The error
// is that of a directory.
func (p *Plugins) Reload(ctx context.Context, bundles ...string) ([]Swap, error) {
	return p.set.Reload(ctx, bundles...)
}

// Watch reloads the plugins after their files have changed, until ctx is done
// or the plugins are closed.
func (p *Plugins) Watch(ctx context.Context) { p.set.Watch(ctx) }

// Limit adds settings.plugins of a workflow: the limits of the processes that
// start afterwards. Among those of several workflows the highest counts.
func (p *Plugins) Limit(settings map[string]any) { p.set.Limit(settings) }

// Open returns an instance of a bundle for a workflow's settings. The plugin
// starts with the first call of the instance, which returns the error of
// settings that the plugin refuses. A bundle that does not exist is a not_found
// error.
func (p *Plugins) Open(ctx context.Context, bundle string, settings tea.Settings) (host.Invoker, error) {
	inst, err := p.set.Open(ctx, bundle, settings)
	if err != nil {
		return nil, err
	}
	return inst, nil
}

// grace is the time that running calls have when the host closes.
const grace = 2 * time.Second

// Close is [Plugins.Shutdown] with 2 s for running calls.
func (p *Plugins) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return p.Shutdown(ctx)
}

// Shutdown ends all plugins, gracefully within ctx, then by force. No process,
// goroutine or file of theirs is left when it returns.
func (p *Plugins) Shutdown(ctx context.Context) error { return p.set.Close(ctx) }

// Describe starts a binary, asks for its manifest and stops it. The file can
// have any name. Of the options, Logger and StartTimeout apply.
func Describe(ctx context.Context, path string, o Options) (tea.Manifest, error) {
	return plugproc.Describe(ctx, path, o)
}

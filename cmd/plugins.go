package teacmd

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/host"
	tea "github.com/the-edge-agent/tea/sdk"
)

// pluginFlags name the plugin directories.
type pluginFlags struct {
	Plugins []string `sep:"none" config:"" placeholder:"DIR" help:"Look for plugins here first (repeatable)."`
}

// pluginUse is how a command may use plugins.
type pluginUse bool

const (
	// readPlugins only reads stored manifests: checking a workflow must not run
	// programs that come with it.
	readPlugins pluginUse = false
	// startPlugins also starts plugins, for calls and to learn manifests.
	startPlugins pluginUse = true
)

// processes are the plugin processes of the full build, or none.
type processes interface {
	host.Plugins
	host.Learner
	host.Limiter
	// Replace replaces the plugins whose files have changed, and returns how
	// many.
	Replace(ctx context.Context) (int, error)
	// Watch calls Replace after each change until ctx is done.
	Watch(ctx context.Context)
}

// pluginSet is the set of plugins that were found; [app.discover] returns it.
type pluginSet struct {
	processes
	found    []foundPlugin
	problems []pluginProblem
	// failures are the errors of plugins that were started and cannot be used.
	mu       sync.Mutex
	failures []error
}

// Refused implements [host.Refuser]. It returns the plugins with problems.
func (s *pluginSet) Refused() []string {
	var names []string
	for _, p := range s.problems {
		if name, ok := strings.CutPrefix(filepath.Base(p.path), "tea-plugin-"); ok {
			names = append(names, strings.TrimSuffix(name, ".exe"))
		}
	}
	return names
}

// Learn asks for manifests and records failures.
func (s *pluginSet) Learn(ctx context.Context, bundles ...string) error {
	err := s.processes.Learn(ctx, bundles...)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failures = append(s.failures, err)
	}
	return err
}

// failed returns the errors of plugins that cannot be used.
func (s *pluginSet) failed() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.failures)
}

// foundPlugin is a plugin with its file.
type foundPlugin struct {
	tea.Manifest
	Path string `json:"path"`
	// Unread is the reason why only the name is known, not the manifest.
	Unread string `json:"unread,omitempty"`
	// Installed is set by [app.addInstalled] for a plugin of the store.
	Installed *installed `json:"installed,omitempty"`
}

// pluginProblem is a fault in a plugin directory.
type pluginProblem struct {
	path, message string
	// fatal reports whether workflows cannot use the plugin.
	fatal bool
	// quiet is set for a plugin that a lock does not list. It is reported only
	// if an action is missing.
	quiet bool
}

func (p pluginProblem) log(to *slog.Logger) {
	to.Warn("plugin problem: "+p.path, "error", p.message)
}

// openHost opens the host with the plugins that are found. The caller has set the
// report and closes the host.
func (a *app) openHost(plugins pluginFlags, report reportFlags, use pluginUse, o host.Options) (*host.Host, error) {
	o.Logger = a.logger(report)
	o.Version, o.Bundles, o.Embedded = a.version, a.bundles, a.embedded.read
	if self, err := os.Executable(); err == nil {
		o.CodeRunner = []string{self, codeRunner}
	}
	set, err := a.discover(plugins, o.Logger, use)
	if err != nil {
		return nil, err
	}
	for _, p := range set.problems {
		if slices.Contains(a.problems, p) {
			continue
		}
		a.problems = append(a.problems, p)
		if !p.quiet {
			p.log(o.Logger)
		}
		a.broken = a.broken || p.fatal
	}
	o.Plugins, a.plugins = set, set
	h, err := host.New(o)
	if err != nil {
		_ = set.Close() // the first error is reported
		return nil, err
	}
	return h, nil
}

// reload replaces the plugins whose files have changed. The plugins log the
// outcome.
func (a *app) reload(ctx context.Context) {
	log := a.logger(reportFlags{})
	replaced, err := a.plugins.Replace(ctx)
	switch {
	case err != nil:
		log.Warn("plugins were not reloaded", "error", err)
	case replaced == 0:
		log.Info("no plugin has changed")
	}
	for _, b := range a.bundles {
		log.Warn(fmt.Sprintf("the bundle %s is linked in and cannot be replaced while tea runs; restart it with the new build", b.Name))
	}
}

// warnUnreadPlugins logs the plugins whose actions are missing from a list.
func (a *app) warnUnreadPlugins(report reportFlags) {
	for _, p := range a.plugins.found {
		if p.Unread != "" {
			a.logger(report).Warn(fmt.Sprintf("the actions of the plugin %s (%s) are not listed: %s; `tea plugin refresh` asks the plugin", p.Name, p.Path, p.Unread))
		}
	}
}

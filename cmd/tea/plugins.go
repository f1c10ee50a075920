package main

import (
	"os"

	"github.com/the-edge-agent/tea/host"
	tea "github.com/the-edge-agent/tea/sdk"
)

// pluginFlags say where plugins are.
type pluginFlags struct {
	Plugins []string `sep:"none" config:"" placeholder:"DIR" help:"Look for plugins here first (repeatable)."`
}

// pluginSet is the plugins that were found; [app.discover] makes it.
type pluginSet struct {
	host.Plugins
	found    []foundPlugin
	problems []pluginProblem
}

// foundPlugin is a plugin with its file.
type foundPlugin struct {
	tea.Manifest
	Path string `json:"path"`
}

// pluginProblem is something wrong in a plugin directory.
type pluginProblem struct {
	path, message string
	// fatal says that the plugin is not there for workflows.
	fatal bool
}

// openHost makes the host with the plugins that are found. The caller closes
// it, and has set the report.
func (a *app) openHost(plugins pluginFlags, report reportFlags, o host.Options) (*host.Host, error) {
	o.Logger = a.logger(report)
	o.Version = version()
	if self, err := os.Executable(); err == nil {
		o.CodeRunner = []string{self, codeRunner}
	}
	set, err := a.discover(plugins, o.Logger, false)
	if err != nil {
		return nil, pluginError(err)
	}
	for _, p := range set.problems {
		o.Logger.Warn("plugin problem: "+p.path, "error", p.message)
		a.broken = a.broken || p.fatal
	}
	o.Plugins = set
	h, err := host.New(o)
	if err != nil {
		_ = set.Close() // the first error is the one to tell
		return nil, err
	}
	return h, nil
}

package teacmd

import (
	"context"
	"time"

	"github.com/the-edge-agent/tea/cmd/internal/checkup"
	"github.com/the-edge-agent/tea/host"
)

type doctorCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
	keepFlags
	pluginFlags
}

// Run makes the checks. The exit code is 1 if one of them fails.
func (c *doctorCmd) Run(a *app) error {
	set, err := a.findPlugins(c.pluginFlags, reportFlags{Quiet: true})
	if err != nil {
		return err
	}
	h, err := host.New(host.Options{Version: a.version, Bundles: a.bundles})
	if err != nil {
		return err
	}
	defer h.Close()
	o := checkup.Options{Host: h, UTF8: a.utf8(), Terminal: a.terminal(a.stderr), Now: time.Now()}
	o.RunDir, _ = c.dir(a) // an empty path becomes a finding
	for _, b := range a.bundles {
		o.Plugins = append(o.Plugins, b.Name+" "+b.Version+" (linked in)")
	}
	for _, p := range set.found {
		if p.Unread != "" {
			o.PluginProblems = append(o.PluginProblems, p.Path+": "+p.Unread+"; `tea plugin refresh` asks the plugin")
			continue
		}
		o.Plugins = append(o.Plugins, p.Name+" "+p.Version)
	}
	for _, p := range set.problems {
		if !p.quiet { // the lock says which plugins are used
			o.PluginProblems = append(o.PluginProblems, p.path+": "+p.message)
		}
	}
	findings := checkup.Run(context.Background(), o)
	if c.JSON {
		err = writeJSON(a.stdout, findings)
	} else {
		var rows [][]string
		for _, f := range findings {
			rows = append(rows, []string{string(f.Verdict), f.Check + ": " + f.Message})
			if f.Hint != "" {
				rows = append(rows, []string{"", f.Hint})
			}
		}
		err = a.table(nil, rows)
	}
	for _, f := range findings {
		if f.Verdict == checkup.Fail {
			return &exitError{code: exitFailed, err: err}
		}
	}
	return err
}

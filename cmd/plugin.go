package teacmd

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

type pluginCmd struct {
	List    pluginListCmd    `cmd:"" default:"withargs" help:"List the plugins that are found (the default)."`
	Info    pluginInfoCmd    `cmd:"" help:"Show a plugin with its actions."`
	Status  pluginStatusCmd  `cmd:"" help:"Show the plugins of running hosts: processes, calls, crashes."`
	Refresh pluginRefreshCmd `cmd:"" help:"Start plugins, ask for their manifests and store them."`
	Trust   pluginTrustCmd   `cmd:"" help:"Trust the plugins in a directory of this project."`
	Test    pluginTestCmd    `cmd:"" help:"Check that a plugin follows the protocol."`
	Docs    pluginDocsCmd    `cmd:"" help:"Write a reference of a plugin as Markdown."`
	Dev     pluginDevCmd     `cmd:"" help:"Rebuild a plugin after each change, for running hosts."`
	New     pluginNewCmd     `cmd:"" help:"Write the project of a new plugin."`
	bundleCmds
}

type pluginStatusCmd struct {
	Names []string `arg:"" name:"name" optional:"" help:"Names of plugins. Default: all."`
	JSON  bool     `name:"json" help:"Print JSON."`
	reportFlags
}

type pluginRefreshCmd struct {
	Names  []string `arg:"" name:"name" optional:"" help:"Names of plugins. Default: all."`
	Beside bool     `help:"Also store the manifests next to the binaries, for packaging."`
	// Settings only exist in a workflow.
	Workflow   string `placeholder:"FILE" help:"Also store the actions that depend on the settings of this workflow, such as the tools of MCP servers."`
	Secrets    string `config:"" placeholder:"JSON|@FILE" help:"Secrets for the settings of the workflow, by name."`
	SecretsEnv string `config:"" placeholder:"PREFIX" help:"Use the environment variables with this prefix as secrets."`
	loadFlags
	pluginFlags
	reportFlags
}

type pluginTrustCmd struct {
	Dir    string `arg:"" optional:"" default:"plugins" help:"The directory. Default: ./plugins."`
	List   bool   `xor:"trust" help:"List the trusted directories."`
	Remove bool   `xor:"trust" help:"End the trust in the directory."`
}

type pluginListCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
	pluginFlags
	reportFlags
}

// Run lists the plugins, and the problems with others.
func (c *pluginListCmd) Run(a *app) error {
	set, err := a.findPlugins(c.pluginFlags, c.reportFlags)
	if err != nil {
		return err
	}
	if err := a.addInstalled(set); err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(a.stdout, append([]foundPlugin{}, set.found...))
	}
	for _, p := range set.problems {
		p.log(a.logger(c.reportFlags))
	}
	var rows [][]string
	for _, p := range set.found {
		version, actions := p.Version, strconv.Itoa(len(p.Actions))
		if p.Unread != "" {
			version, actions = "-", "-"
		}
		rows = append(rows, slices.Concat([]string{p.Name, version, actions}, p.installedColumns(set.found), []string{p.Path}))
	}
	header := slices.Concat([]string{"PLUGIN", "VERSION", "ACTIONS"}, installedHeader(set.found), []string{"PATH"})
	if err := a.table(header, rows); err != nil {
		return err
	}
	a.plugins = set
	a.warnUnreadPlugins(c.reportFlags)
	if slices.ContainsFunc(set.problems, func(p pluginProblem) bool { return p.fatal && !p.quiet }) {
		return &exitError{code: exitPlugin}
	}
	return nil
}

// installed is the store's data about a plugin.
type installed struct {
	Bundle string `json:"bundle"`
	// SignedBy is the ID of the key that signed the bundle.
	SignedBy string `json:"signed_by,omitempty"`
	// Versions are the versions that were active, oldest first. A rollback keeps
	// the version that it leaves, after the present one.
	Versions []string `json:"versions"`
}

func installedHeader(found []foundPlugin) []string {
	if slices.ContainsFunc(found, func(p foundPlugin) bool { return p.Installed != nil }) {
		return []string{"SIGNED BY", "INSTALLED"}
	}
	return nil
}

// installedColumns are shown if one of the plugins is in the store.
func (p foundPlugin) installedColumns(found []foundPlugin) []string {
	switch {
	case installedHeader(found) == nil:
		return nil
	case p.Installed == nil:
		return []string{"-", "-"}
	case p.Installed.SignedBy == "":
		return []string{"-", strings.Join(p.Installed.Versions, " ")}
	}
	return []string{p.Installed.SignedBy, strings.Join(p.Installed.Versions, " ")}
}

// findPlugins returns the plugins that are found. The set is closed and only for
// reading.
func (a *app) findPlugins(flags pluginFlags, report reportFlags) (*pluginSet, error) {
	a.setReport(report)
	set, err := a.discover(flags, a.logger(report), readPlugins)
	if err != nil {
		return nil, err
	}
	if err := set.Close(); err != nil {
		return nil, pluginError(err)
	}
	return set, nil
}

type pluginInfoCmd struct {
	Name string `arg:"" help:"Name of the plugin."`
	JSON bool   `name:"json" help:"Print JSON."`
	pluginFlags
	reportFlags
}

func (c *pluginInfoCmd) Run(a *app) error {
	set, err := a.findPlugins(c.pluginFlags, c.reportFlags)
	if err != nil {
		return err
	}
	p, err := set.named(c.Name)
	if err != nil && (!c.JSON || p.Unread == "") {
		return err
	}
	return c.show(a, p)
}

// named returns the plugin with that name and its manifest.
func (s *pluginSet) named(name string) (foundPlugin, error) {
	var names []string
	for _, p := range s.found {
		if p.Name == name && p.Unread != "" {
			return p, pluginError(fmt.Errorf("%s: %s; `tea plugin refresh %s` asks the plugin", p.Path, p.Unread, p.Name))
		}
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	for _, p := range s.problems { // such as a lock that does not allow it
		if filepath.Base(p.path) == "tea-plugin-"+name {
			return foundPlugin{}, pluginError(fmt.Errorf("%s: %s", p.path, p.message))
		}
	}
	hint := diag.Suggest(name, names)
	if hint == "" {
		hint = "`tea plugin list` lists those that are found"
	}
	return foundPlugin{}, pluginError(fmt.Errorf("plugin %q not found; %s", name, hint))
}

func (c *pluginInfoCmd) show(a *app, m foundPlugin) error {
	if c.JSON {
		return writeJSON(a.stdout, m)
	}
	about := [][]string{
		{m.Name + " " + m.Version + ": " + m.Description}, {"path: " + m.Path}, {fmt.Sprintf("protocol: %d", m.Protocol)},
	}
	if len(m.Settings) > 0 {
		var keys []string
		for key := range m.Settings {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		about = append(about, []string{"settings: " + strings.Join(keys, ", ")})
	}
	if len(m.Env) > 0 {
		about = append(about, []string{"environment: " + strings.Join(m.Env, ", ")})
	}
	if len(m.Exclusive) > 0 {
		about = append(about, []string{"exclusive settings: " + strings.Join(m.Exclusive, ", ")})
	}
	if m.MemoryBytes > 0 {
		about = append(about, []string{fmt.Sprintf("memory: %d MiB", m.MemoryBytes>>20)})
	}
	if m.StartTimeoutMS > 0 {
		about = append(about, []string{fmt.Sprintf("start: up to %s", time.Duration(m.StartTimeoutMS)*time.Millisecond)})
	}
	about = append(about, runningRows(m.Name)...)
	if err := a.table(nil, about); err != nil {
		return err
	}
	fmt.Fprintln(a.out, "\nactions")
	var rows [][]string
	for _, action := range m.Actions {
		rows = append(rows, []string{action.Name, action.Summary})
	}
	return a.table(nil, rows)
}

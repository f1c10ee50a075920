//go:build !noplugins

package teacmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/the-edge-agent/tea/host/bundles"
	"github.com/the-edge-agent/tea/host/subproc"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// runsPlugins reports whether this build runs plugins.
const runsPlugins = true

// discover finds plugins. The caller closes the set.
func (a *app) discover(flags pluginFlags, log *slog.Logger, use pluginUse) (*pluginSet, error) {
	plugins, problems, err := a.subprocesses(flags, log, use)
	if err != nil {
		return nil, err
	}
	set := &pluginSet{processes: pluginProcesses{plugins}}
	for _, b := range plugins.Bundles() {
		set.found = append(set.found, foundPlugin{Manifest: b.Manifest, Path: b.Path})
	}
	for _, u := range plugins.UnreadBundles() {
		set.found = append(set.found, foundPlugin{Manifest: tea.Manifest{Name: u.Name}, Path: u.Path, Unread: u.Reason})
	}
	for _, p := range problems {
		var unlisted *bundles.Refusal
		quiet := errors.As(p.Err, &unlisted) && unlisted.Unlisted
		set.problems = append(set.problems, pluginProblem{p.Path, p.Message, p.Severity == diag.Error, quiet})
	}
	return set, nil
}

// pluginProcesses are the plugins of the full build.
type pluginProcesses struct{ *subproc.Plugins }

func (p pluginProcesses) Replace(ctx context.Context) (int, error) {
	swaps, err := p.Reload(ctx)
	return len(swaps), err
}

func (a *app) subprocesses(flags pluginFlags, log *slog.Logger, use pluginUse) (*subproc.Plugins, []subproc.Problem, error) {
	rules, err := a.rules(a.workflowDirs()...)
	if err != nil {
		return nil, nil, err
	}
	policy, err := bundles.WatchPolicy(rules)
	if err != nil {
		return nil, nil, pluginError(err)
	}
	return a.subprocessesUnder(policy, policy.Files(), flags, log, use)
}

// workflowDirs returns the working directory and the directories of the
// workflows. For a workflow that is a link it adds the directory of its target.
func (a *app) workflowDirs() []string {
	dirs := []string{"."}
	for _, file := range a.workflows {
		dirs = append(dirs, filepath.Dir(file), filepath.Dir(resolved(file)))
	}
	return dirs
}

// rules returns the rules for plugins: the locks in the directories, and the
// required keys of the configuration and of the project files in the directories.
func (a *app) rules(dirs ...string) (bundles.Rules, error) {
	keys, err := a.config.requiredKeys()
	if err != nil {
		return bundles.Rules{}, usageError(err)
	}
	for _, dir := range dirs {
		if resolved(dir) == resolved(".") { // its file was read already
			continue
		}
		values, err := readConfig(filepath.Join(dir, projectFile))
		if err != nil {
			return bundles.Rules{}, usageError(err)
		}
		if list := keysOf(values); len(list) > 0 {
			keys = append(keys, list)
		}
	}
	for _, key := range slices.Concat(keys...) {
		if _, err := bundles.ParseKey(key); err != nil {
			return bundles.Rules{}, usageErrorf("%s: %w", requiredKeys, err)
		}
	}
	return bundles.Rules{Dirs: dirs, Keys: keys, Getenv: a.getenv}, nil
}

func (a *app) policyOf(dirs ...string) (*bundles.Policy, error) {
	rules, err := a.rules(dirs...)
	if err != nil {
		return nil, err
	}
	policy, err := bundles.LoadPolicy(rules)
	if err != nil {
		return nil, pluginError(err)
	}
	return policy, nil
}

// verifier decides which plugins can run.
type verifier interface {
	Verify(name, path string) error
}

// standardDirs returns the plugin directory of an unpacked archive, if there is one.
func standardDirs() []string {
	if dirs := libraryDirs(); len(dirs) > 1 {
		return []string{filepath.Join(dirs[0], "plugins")}
	}
	return nil
}

// subprocessesUnder finds plugins; watched are the files that the policy reads.
func (a *app) subprocessesUnder(policy verifier, watched []string, flags pluginFlags, log *slog.Logger, use pluginUse) (*subproc.Plugins, []subproc.Problem, error) {
	plugins, problems, err := subproc.Discover(context.Background(), subproc.Options{
		Dirs: flags.Plugins, Foreign: a.foreign(flags.Plugins), Logger: log, Mask: a.masked, StoredOnly: use == readPlugins,
		Verify: policy.Verify, Watched: watched, Standard: standardDirs(),
	})
	var path *fs.PathError
	if errors.As(err, &path) {
		return nil, nil, usageErrorf("--plugins (or TEA_PLUGINS, or plugins in a configuration file): %s: %w", path.Path, path.Err)
	}
	if err != nil {
		return nil, nil, pluginError(err)
	}
	return plugins, problems, nil
}

// foreign returns the plugin directories that may have come with a checkout:
// those that the project's file names by a relative path, and those inside the
// project.
func (a *app) foreign(dirs []string) []string {
	if !a.projectPlugins {
		return nil
	}
	project := resolved(".")
	return slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool {
		rel, err := filepath.Rel(project, resolved(dir))
		return filepath.IsAbs(dir) && !ofProcess(dir) && err == nil && !filepath.IsLocal(rel)
	})
}

// Run asks the plugins for their manifests and lists them.
func (c *pluginRefreshCmd) Run(a *app) (err error) {
	a.setReport(c.reportFlags)
	plugins, problems, err := a.subprocesses(c.pluginFlags, a.logger(c.reportFlags), startPlugins)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plugins.Close()) }()
	for _, p := range problems {
		a.logger(c.reportFlags).Warn("plugin problem: "+p.Path, "error", p.Message)
	}
	ctx, stop := stoppable()
	defer stop(nil)
	answers := plugins.Refresh(ctx, c.Beside, c.Names...)
	for _, name := range c.Names {
		if !slices.ContainsFunc(answers, func(a subproc.Asked) bool { return filepath.Base(a.Path) == "tea-plugin-"+name }) {
			return pluginError(fmt.Errorf("plugin %q not found; `tea plugin list` lists those that are found", name))
		}
	}
	if c.Workflow != "" {
		defer func() {
			if err == nil {
				err = c.refreshDynamic(a)
			}
		}()
	}
	failed := false
	for _, answer := range answers {
		if answer.Err != nil {
			failed = true
			a.printError(answer.Err)
			continue
		}
		fmt.Fprintf(a.out, "%s %s: manifest stored (%s)\n", answer.Manifest.Name, answer.Manifest.Version, answer.Path)
	}
	if failed {
		return &exitError{code: exitPlugin}
	}
	return nil
}

// Run changes or prints the list of trusted directories.
func (c *pluginTrustCmd) Run(a *app) error {
	trust := subproc.UserTrust()
	switch {
	case c.List:
		dirs, err := trust.List()
		if err != nil {
			return err
		}
		for _, d := range dirs {
			fmt.Fprintln(a.out, inLine(d.Path))
		}
		return nil
	case c.Remove:
		if err := trust.Remove(c.Dir); err != nil {
			return usageError(err)
		}
		return nil
	}
	if inner := filepath.Join(c.Dir, "plugins"); filepath.Base(absolute(c.Dir)) != "plugins" && isDir(inner) {
		return usageErrorf("%s is not a plugin directory; trust %s", c.Dir, inner)
	}
	d, err := trust.Add(c.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return usageErrorf("%s not found", absolute(c.Dir))
	}
	if err != nil {
		return usageError(err)
	}
	fmt.Fprintf(a.out, "trusted: %s\n", inLine(d.Path))
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

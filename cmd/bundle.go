//go:build !noplugins

package teacmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/bundles"
	"github.com/the-edge-agent/tea/host/subproc"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/confine"
)

// bundleCmds are the commands of `tea plugin` for bundles.
type bundleCmds struct {
	Pack     bundlePackCmd     `cmd:"" help:"Pack the binaries of a plugin into a bundle file."`
	Keygen   bundleKeygenCmd   `cmd:"" help:"Make a key pair for signatures."`
	Sign     bundleSignCmd     `cmd:"" help:"Sign bundles."`
	Verify   bundleVerifyCmd   `cmd:"" help:"Check bundles and their signatures, or all that is installed."`
	Index    bundleIndexCmd    `cmd:"" help:"Print an index of the bundles in a directory."`
	Install  bundleInstallCmd  `cmd:"" help:"Install a bundle from a file, a directory or an https URL."`
	Outdated bundleOutdatedCmd `cmd:"" help:"List installed plugins that have a newer version in a directory or an index file."`
	Rollback bundleRollbackCmd `cmd:"" help:"Return to the version of a plugin that was active before."`
	Remove   bundleRemoveCmd   `cmd:"" help:"Remove installed plugins with all their versions."`
	GC       bundleGCCmd       `cmd:"" name:"gc" help:"Remove old versions of installed plugins."`
	Lock     bundleLockCmd     `cmd:"" help:"Pin the plugins of a project in tea.lock."`
}

type bundlePackCmd struct {
	Binaries []string `arg:"" name:"binary" help:"Binaries of one plugin, one for each platform."`
	Output   string   `short:"o" placeholder:"FILE" help:"The bundle. Default: NAME-VERSION.teab."`
	Manifest string   `placeholder:"FILE" help:"The manifest. Default: tea asks the binary for this platform."`
	License  string   `placeholder:"FILE" help:"Add the licence."`
	SBOM     string   `name:"sbom" placeholder:"FILE" help:"Add this bill of materials. Default: made from the build information of Go binaries."`
	Doc      []string `sep:"none" placeholder:"FILE" help:"Add documentation (repeatable)."`
	reportFlags
}

func (c *bundlePackCmd) Run(a *app) error {
	a.setReport(c.reportFlags)
	ctx, stop := stoppable()
	defer stop(nil)
	manifest, err := c.manifest(ctx, a)
	if err != nil {
		return bundleError(err)
	}
	if c.Output == "" {
		c.Output = manifest.Name + "-" + manifest.Version + bundles.Suffix
	}
	var index *bundles.Index
	if err := checkOutput(c.Output); err != nil {
		return usageErrorf("--output: %w", err)
	}
	err = writeFile(c.Output, 0o644, func(w io.Writer) error {
		index, err = bundles.Pack(w, bundles.Contents{
			Manifest: manifest, Binaries: c.Binaries, License: c.License, SBOM: c.SBOM, Docs: c.Doc,
		})
		return err
	})
	if err != nil {
		return bundleError(fmt.Errorf("pack %s: %w", c.Output, err))
	}
	fmt.Fprintf(a.out, "%s: %s %s for %s\n", inLine(c.Output), manifest.Name, manifest.Version, strings.Join(index.List(), ", "))
	return nil
}

// manifest returns the manifest of the plugin. Only a binary for this platform
// can be asked for it.
func (c *bundlePackCmd) manifest(ctx context.Context, a *app) (tea.Manifest, error) {
	var m tea.Manifest
	if c.Manifest != "" {
		data, err := confine.ReadRegular(c.Manifest, 8<<20)
		if err != nil {
			return m, err
		}
		if err := json.Unmarshal(data, &m); err != nil {
			return m, usageErrorf("--manifest: %s is not a manifest: %w", absolute(c.Manifest), err)
		}
		if err := cmp.Or(m.Check(), m.CheckSchemas()); err != nil {
			return m, usageErrorf("--manifest: %s: %w", absolute(c.Manifest), err)
		}
		return m, nil
	}
	for _, binary := range c.Binaries {
		platform, err := bundles.PlatformOf(binary)
		if err != nil {
			return m, err
		}
		if platform == bundles.Platform || platform == bundles.AnyPlatform {
			return subproc.Describe(ctx, binary, subproc.Options{Logger: a.logger(c.reportFlags)})
		}
	}
	return m, fmt.Errorf("none of the binaries is for %s, so none can be asked for its manifest; pass --manifest FILE, the file that `tea plugin refresh --beside` writes on another machine", bundles.Platform)
}

type bundleIndexCmd struct {
	Dir string `arg:"" help:"The directory."`
}

// Run prints the index as JSON.
func (c *bundleIndexCmd) Run(a *app) error {
	catalog, err := bundles.ReadCatalog(c.Dir)
	if err != nil {
		return bundleError(err)
	}
	if err := writeJSON(a.stdout, catalog); err != nil {
		return err
	}
	return a.bundleErrors(catalog.Damaged)
}

// bundleErrors prints the errors of several bundles. The most serious error
// determines the exit code.
func (a *app) bundleErrors(faults bundles.BundleErrors) error {
	code := exitDone
	for _, err := range faults {
		code = max(code, a.explain(bundleError(err)))
	}
	if code == exitDone {
		return nil
	}
	return &exitError{code: code}
}

type bundleInstallCmd struct {
	Source string   `arg:"" help:"A bundle file, a directory (the newest version of each plugin in it), or an https URL."`
	Key    []string `short:"k" sep:"none" placeholder:"KEY|FILE" help:"Require a signature by this public key (repeatable: by one of them)."`
	reportFlags
}

func (c *bundleInstallCmd) Run(a *app) error {
	a.setReport(c.reportFlags)
	installer, err := a.installer(c.Key)
	if err != nil {
		return err
	}
	ctx, stop := stoppable()
	defer stop(nil)
	changes, err := installer.Install(ctx, c.Source)
	for _, change := range changes {
		fmt.Fprintf(a.out, "installed: %s\n", describeChange(change))
	}
	if err := c.warn(a, changes); err != nil {
		return err
	}
	var faults bundles.BundleErrors
	switch {
	case err == nil:
		return nil
	case errors.As(err, &faults):
		return a.bundleErrors(faults)
	}
	return bundleError(err)
}

// installer returns an installer that requires the signatures of the
// configuration, and one of the given keys if there are any.
func (a *app) installer(given []string) (*bundles.Installer, error) {
	keys, err := a.keys(given)
	if err != nil {
		return nil, err
	}
	installer := &bundles.Installer{Store: bundles.UserStore(a.getenv), Keys: keys}
	if cache := xdg(a.getenv, "XDG_CACHE_HOME", ".cache"); cache != "" {
		installer.CacheDir = filepath.Join(cache, "tea")
	}
	return installer, nil
}

func describeChange(c bundles.Change) string {
	text := c.Now.Name + " " + c.Now.Version
	switch {
	case c.Before == nil:
	case c.Before.Bundle == c.Now.Bundle:
		text += " (already installed)"
	default:
		text += " (before: " + c.Before.Version + ")"
	}
	switch {
	case c.Now.Key != "":
		if k, err := bundles.ParseKey(c.Now.Key); err == nil {
			text += ", signed by key " + k.ID()
		}
	case c.Unverified != "":
		text += ", signature by key " + c.Unverified + " not verified (pass --key)"
	default:
		text += ", not signed"
	}
	return text
}

// warn logs why new versions cannot run in this directory.
func (c *bundleInstallCmd) warn(a *app, changes []bundles.Change) error {
	policy, err := a.policyOf(".")
	if err != nil {
		return err
	}
	for _, change := range changes {
		if err := policy.Verify(change.Now.Name, change.Now.Binary()); err != nil {
			a.logger(c.reportFlags).Warn("plugin "+change.Now.Name+" is not used in this directory", "error", err)
		}
	}
	return nil
}

// keys returns the lists of keys of a flag and of the configuration. A bundle
// needs a signature by one key of each list.
func (a *app) keys(given []string) ([][]bundles.Key, error) {
	lists, err := a.config.requiredKeys()
	if err != nil {
		return nil, usageError(err)
	}
	for _, key := range given {
		if _, err := bundles.ParseKey(key); err != nil {
			return nil, usageErrorf("--key: %w", err)
		}
	}
	if len(given) > 0 {
		lists = append(lists, given)
	}
	policy, err := bundles.LoadPolicy(bundles.Rules{Keys: lists, Getenv: a.getenv})
	if err != nil {
		return nil, usageError(err)
	}
	return policy.Keys, nil
}

type bundleOutdatedCmd struct {
	Source string `arg:"" help:"A directory of bundles, or an index file."`
	JSON   bool   `name:"json" help:"Print JSON."`
	reportFlags
}

// Run lists the plugins that have a newer version.
func (c *bundleOutdatedCmd) Run(a *app) error {
	a.setReport(c.reportFlags)
	catalog, err := bundles.ReadCatalog(c.Source)
	if err == nil && len(catalog.Bundles)+len(catalog.Damaged) == 0 {
		err = &bundles.SourceError{Source: c.Source, Reason: "it has no bundles (*" + bundles.Suffix + ")"}
	}
	if err != nil {
		return bundleError(err)
	}
	store, err := a.store()
	if err != nil {
		return err
	}
	installed, err := store.List()
	if err != nil {
		a.logger(c.reportFlags).Warn("some plugins are damaged", "error", err)
	}
	if err := c.print(a, catalog.Outdated(installed)); err != nil {
		return err
	}
	return a.bundleErrors(catalog.Damaged)
}

func (c *bundleOutdatedCmd) print(a *app, updates []bundles.Update) error {
	if c.JSON {
		return writeJSON(a.stdout, updates)
	}
	var rows [][]string
	for _, u := range updates {
		rows = append(rows, []string{u.Name, u.Installed, u.Newest, u.File})
	}
	return a.table([]string{"PLUGIN", "INSTALLED", "NEWEST", "FILE"}, rows)
}

// bundleError classifies the error of a command for bundles. A file that cannot
// be read or written, other than by an installation, is a usage error, and so is
// a source that cannot hold bundles. A full disk is a failure; everything else
// is a problem with the bundle.
func bundleError(err error) error {
	var file *fs.PathError
	switch {
	case errors.As(err, new(*exitError)):
		return err
	case errors.As(err, new(*bundles.SourceError)):
		return usageError(err)
	case errors.As(err, new(*bundles.InstallError)) && tea.AsError(err).Type == tea.ResourceExhausted:
		return err
	case errors.As(err, new(*bundles.InstallError)) || !errors.As(err, &file):
	case file.Op == "write" && tea.AsError(file).Type == tea.ResourceExhausted:
		return &fs.PathError{Op: file.Op, Path: absolute(file.Path), Err: file.Err}
	case file.Op == "write":
		return usageError(&fs.PathError{Op: file.Op, Path: absolute(file.Path), Err: file.Err})
	case errors.Is(file, fs.ErrNotExist):
		return usageErrorf("%s not found", absolute(file.Path))
	case file.Op == "open" || file.Op == "read" || file.Op == "stat":
		return usageError(unreadable(file.Path, file))
	}
	return pluginError(err)
}

// store returns the user's store. It is an error if there is no home directory.
func (a *app) store() (*bundles.Store, error) {
	store := bundles.UserStore(a.getenv)
	if store == nil {
		return nil, pluginError(errors.New("there is no home directory, so no plugins are installed"))
	}
	return store, nil
}

type bundleRollbackCmd struct {
	Name string `arg:"" help:"Name of the plugin."`
}

func (c *bundleRollbackCmd) Run(a *app) error {
	store, err := a.store()
	if err != nil {
		return err
	}
	from, to, err := store.Rollback(c.Name)
	if err != nil {
		return pluginError(err)
	}
	fmt.Fprintf(a.out, "active: %s %s (before: %s)\n", to.Name, to.Version, from.Version)
	return nil
}

type bundleRemoveCmd struct {
	Names []string `arg:"" name:"name" help:"Names of plugins."`
}

func (c *bundleRemoveCmd) Run(a *app) error {
	store, err := a.store()
	if err != nil {
		return err
	}
	for _, name := range c.Names {
		if err := store.Remove(name); err != nil {
			return pluginError(err)
		}
		fmt.Fprintf(a.out, "removed: %s\n", inLine(name))
	}
	return nil
}

type bundleGCCmd struct {
	Keep int `default:"1" help:"Keep this many earlier versions of each plugin for a rollback."`
}

func (c *bundleGCCmd) Run(a *app) error {
	if c.Keep < 0 {
		return usageErrorf("--keep %d: expected 0 or more", c.Keep)
	}
	store, err := a.store()
	if err != nil {
		return err
	}
	swept, err := store.GC(c.Keep)
	for _, e := range swept.Entries {
		fmt.Fprintf(a.out, "removed: %s %s\n", e.Name, e.Version)
	}
	if err != nil {
		return pluginError(err)
	}
	fmt.Fprintf(a.out, "freed %.1f MB\n", float64(swept.Bytes)/1e6)
	return nil
}

// addInstalled adds the store's data to the plugins that were found.
func (a *app) addInstalled(set *pluginSet) error {
	store := bundles.UserStore(a.getenv)
	if store == nil {
		return nil
	}
	plugins, err := store.List()
	if err != nil {
		set.problems = append(set.problems, pluginProblem{path: "the store of plugins", message: err.Error(), fatal: true})
	}
	for i := range set.found {
		p := &set.found[i]
		at := slices.IndexFunc(plugins, func(in bundles.Installed) bool {
			return in.Active >= 0 && in.Name == p.Name && resolved(p.Path) == resolved(in.Versions[in.Active].Binary())
		})
		if at < 0 {
			continue
		}
		in := plugins[at]
		p.Installed = &installed{Bundle: in.Versions[in.Active].Bundle, Versions: []string{}}
		if k, err := bundles.ParseKey(in.Versions[in.Active].Key); err == nil {
			p.Installed.SignedBy = k.ID()
		}
		for _, e := range in.Versions {
			p.Installed.Versions = append(p.Installed.Versions, e.Version)
		}
	}
	return nil
}

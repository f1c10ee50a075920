package teacmd

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/cmd/internal/scaffold"
	"github.com/the-edge-agent/tea/host"
)

type pluginNewCmd struct {
	Name   string `arg:"" help:"Name of the plugin, also the namespace of its actions."`
	Dir    string `arg:"" optional:"" help:"Directory of the project. Default: ./tea-plugin-NAME."`
	Lang   string `default:"go" values:"go,node,proto,python,rust" placeholder:"LANGUAGE" help:"Language: go, node, python or rust; proto writes the protocol alone, for other languages. Default: go."`
	Source string `placeholder:"DIR" env:"TEA_SOURCE" help:"Checkout of tea to take the files from. Default: the files in this program."`
}

func (c *pluginNewCmd) Run(a *app) error {
	if err := checkNamespace(c.Name); err != nil {
		return err
	}
	if c.Dir == "" {
		c.Dir = "tea-plugin-" + c.Name
	}
	files, err := c.files(a)
	if err != nil {
		return err
	}
	paths, err := scaffold.Write(files, c.Dir, c.Name, c.Lang)
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return fmt.Errorf("write the project: %w", err)
	}
	if err != nil {
		return usageError(err)
	}
	fmt.Fprintf(a.out, "wrote %d files to %s; %s explains how to build and test the plugin\n", len(paths), c.Dir, "README.md")
	return nil
}

// files returns the files for the project. A program from `go install` does not
// contain them; its modules are in Go's module cache.
func (c *pluginNewCmd) files(a *app) (scaffold.Files, error) {
	if c.Source != "" {
		root, err := checkout(c.Source)
		if err != nil {
			return nil, err
		}
		return scaffold.Read(root, filepath.Join(root, "sdk"))
	}
	files, err := scaffold.Packed()
	if !errors.Is(err, scaffold.ErrNotPacked) {
		return files, err
	}
	if !a.isRelease() {
		return nil, usageErrorf("%w; name a checkout of tea with --source DIR or TEA_SOURCE", err)
	}
	ctx, stop := stoppable()
	defer stop(nil)
	if files, err = scaffold.Released(ctx, a.version); err != nil {
		return nil, fmt.Errorf("read tea's modules in Go's cache: %w\n  hint: install tea from a release, which contains the files of new projects, or name a checkout with --source DIR", err)
	}
	return files, nil
}

// checkNamespace refuses a namespace that tea itself uses, for actions or in Lua.
func checkNamespace(name string) error {
	h, err := host.New(host.Options{})
	if err != nil {
		return err
	}
	defer h.Close()
	entries, err := h.Actions()
	if err != nil {
		return err
	}
	if name == "tea" || slices.ContainsFunc(entries, func(e host.ActionEntry) bool { return strings.HasPrefix(e.Name, name+".") }) {
		return usageErrorf("plugin name %q: tea itself has this namespace; choose another name", name)
	}
	return nil
}

type pluginTestCmd struct {
	Binary   string `arg:"" help:"The plugin's binary."`
	Only     string `name:"run" short:"r" placeholder:"REGEXP" help:"Make only the checks whose names match."`
	Settings string `placeholder:"JSON|@FILE" help:"Settings of the plugin, if it needs some."`
	JSON     bool   `name:"json" help:"Print JSON."`
	reportFlags
}

type pluginDocsCmd struct {
	Plugin string `arg:"" help:"Name of a plugin that is found, or path of a binary, which is started, or of a stored manifest."`
	pluginFlags
	reportFlags
}

type pluginDevCmd struct {
	Dir  string `arg:"" optional:"" default:"." help:"Directory of the project. Default: the working directory."`
	Into string `placeholder:"DIR" help:"Put programs that work into this directory. Default: bin in the project."`
	reportFlags
}

package teacmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/cmd/internal/agentbuild"
	"github.com/the-edge-agent/tea/host"
)

type buildCmd struct {
	With      []string `sep:"none" placeholder:"BUNDLE[OPTION,...],..." help:"Bundles to link in: a name (llm), a directory (./mine) or a module (example.com/mine@v1.2.0). Options are build tags (memory[lite]) or further parts of the bundle (memory[postgres,s3])."`
	Target    string   `placeholder:"OS/ARCH" help:"Platform of the program, such as linux/arm64 or linux/arm/v7. Default: this machine."`
	Output    string   `short:"o" default:"agent" placeholder:"FILE" help:"The program to write; for Windows with the suffix .exe. Default: agent."`
	Embed     []string `sep:"none" placeholder:"FILE" help:"Workflow that the program contains and runs by default, with the modules and subgraphs that it names. Further files are embedded too (repeatable)."`
	Processes bool     `help:"Keep the host of plugin processes in the program."`
	Source    string   `placeholder:"DIR" env:"TEA_SOURCE" help:"Checkout of tea to build from. Default: the released modules of this version."`
	reportFlags
}

func (c *buildCmd) Run(a *app) error {
	a.setReport(c.reportFlags)
	o := agentbuild.Options{Version: a.version, Source: c.Source, Processes: c.Processes, Output: c.Output, Log: a.report}
	if info, err := os.Stat(c.Output); err == nil && !info.Mode().IsRegular() {
		return usageErrorf("--output: %s is not a regular file", absolute(c.Output))
	}
	if err := checkOutput(c.Output); err != nil {
		return usageErrorf("--output: %w", err)
	}
	var err error
	if o.OS, o.Arch, err = agentbuild.ParseTarget(c.Target); err != nil {
		return usageError(err)
	}
	if o.OS == "windows" && filepath.Ext(o.Output) == "" {
		o.Output += ".exe" // Windows only starts programs with this extension
	}
	if o.Bundles, err = agentbuild.ParseBundles(strings.Join(c.With, ",")); err != nil {
		return usageError(err)
	}
	if c.Source == "" && !a.isRelease() {
		return usageErrorf("this tea is not a release; name a checkout of its source with --source DIR or TEA_SOURCE")
	}
	if c.Source != "" {
		if o.Source, err = checkout(c.Source); err != nil {
			return err
		}
	}
	if len(c.Embed) > 0 {
		if o.Embed, err = embeddedFiles(c.Embed); err != nil {
			return err
		}
		o.Workflow = filepath.Base(c.Embed[0])
	}
	ctx, stop := stoppable()
	defer stop(nil)
	res, err := agentbuild.Build(ctx, o)
	if compile := (*agentbuild.CompileError)(nil); errors.As(err, &compile) || errors.Is(err, agentbuild.ErrNoGo) {
		return pluginError(err)
	}
	if workflow := (*agentbuild.WorkflowError)(nil); errors.As(err, &workflow) {
		return &exitError{exitInvalid, err}
	}
	if usage := (*agentbuild.UsageError)(nil); errors.As(err, &usage) {
		return usageError(err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s  %s/%s  %.1f MB  %s\n", res.File, o.OS, o.Arch, float64(res.Size)/1e6, res.Took.Round(time.Second/10))
	if len(res.C) > 0 {
		fmt.Fprintf(a.report, "note: the program needs the C library of the target, for %s\n", strings.Join(res.C, ", "))
	}
	if res.Unchecked {
		fmt.Fprintf(a.report, "note: the actions of %s were not checked, since this machine cannot run the program; run `%s validate %s` on the device\n", o.Workflow, filepath.Base(res.File), o.Workflow)
	}
	return nil
}

// isRelease reports whether the modules of this version are published.
func (a *app) isRelease() bool { return !strings.HasPrefix(a.version, "0.0.0") }

// checkout returns the absolute path of a checkout of tea.
func checkout(dir string) (string, error) {
	root := absolute(dir)
	if !isFile(filepath.Join(root, "cmd", "tea", "main.go")) {
		return "", usageErrorf("--source %s: this is not a checkout of tea", root)
	}
	return root, nil
}

// embeddedFiles returns the contents of the workflow named[0], of the files that
// it refers to, and of the other named files, by path relative to the workflow.
func embeddedFiles(named []string) (map[string][]byte, error) {
	var mu sync.Mutex
	read := map[string]bool{}
	h, err := host.New(host.Options{Embedded: func(file string) ([]byte, bool) {
		mu.Lock()
		defer mu.Unlock()
		read[file] = true
		return nil, false
	}})
	if err != nil {
		return nil, err
	}
	defer h.Close()
	wf, err := h.Load(named[0], host.LoadOptions{})
	if diags := host.Diagnostics(nil); errors.As(err, &diags) && host.LacksPlugins(diags) {
		err = nil // the linked-in bundles have the actions
	}
	if err != nil {
		return nil, err
	}
	if wf != nil {
		_ = wf.Close()
	}
	for _, file := range named[1:] {
		read[absolute(file)] = true
	}
	dir := filepath.Dir(absolute(named[0]))
	files := map[string][]byte{}
	for file := range read {
		rel, err := filepath.Rel(dir, file)
		if err != nil || !filepath.IsLocal(rel) {
			return nil, &exitError{exitInvalid, fmt.Errorf("cannot embed %s: it is outside of the workflow's directory %s", file, dir)}
		}
		if files[filepath.ToSlash(rel)], err = os.ReadFile(file); err != nil {
			return nil, &exitError{exitInvalid, err}
		}
	}
	return files, nil
}

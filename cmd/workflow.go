package teacmd

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/the-edge-agent/tea/cmd/internal/project"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/sdk/x/confine"
)

// loadFlags change the workflow that is loaded.
type loadFlags struct {
	configFlag
	Overlay []string `short:"f" sep:"none" placeholder:"FILE" help:"Merge this file over the workflow (repeatable)."`
}

// configFlag is separate because tea resume has no overlays.
type configFlag struct {
	Config string `short:"C" placeholder:"JSON" help:"Merge this JSON over the workflow. On resume, it replaces the JSON of the first run."`
}

func (f loadFlags) loadOptions() host.LoadOptions {
	return host.LoadOptions{Overlays: f.Overlay, Config: f.Config}
}

type validateCmd struct {
	Files  []string `arg:"" name:"file" help:"Workflow files."`
	Strict bool     `help:"Check more, for example for unreachable nodes; warnings count as errors."`
	JSON   bool     `name:"json" help:"Print the findings as a JSON list."`
	loadFlags
	pluginFlags
	reportFlags
}

func (c *validateCmd) workflowFiles() []string { return c.Files }

func (c *validateCmd) Run(a *app) error {
	a.setReport(c.reportFlags)
	h, err := a.openHost(c.pluginFlags, c.reportFlags, readPlugins, host.Options{})
	if err != nil {
		return err
	}
	defer h.Close()
	o := c.loadOptions()
	o.Strict = c.Strict
	all := host.Diagnostics{}
	for _, file := range c.Files {
		diags := h.Validate(file, o)
		all = append(all, diags...)
		if !diags.HasErrors() && !c.JSON && !c.Quiet {
			fmt.Fprintf(a.out, "%s: valid\n", file)
		}
	}
	if host.LacksPlugins(all) {
		a.explainMissing()
	}
	if c.JSON {
		if err := writeJSON(a.stdout, all); err != nil {
			return err
		}
	} else if len(all) > 0 {
		a.report.Diagnostics(all)
	}
	if all.HasErrors() {
		return &exitError{code: a.exitCodeFor(all)}
	}
	return nil
}

type inspectCmd struct {
	File string `arg:"" help:"Workflow file, id of a run for its workflow with the statuses of the nodes in the formats json and svg, or a graph that graph.export has written as .cyjs."`
	drawFlags
	keepFlags
	loadFlags
	pluginFlags
	reportFlags
}

// drawFlags choose the format of a drawing.
type drawFlags struct {
	Format string `default:"text" enum:"text,json,dot,mermaid,svg" help:"text, json, dot, mermaid or svg."`
	JSON   bool   `name:"json" help:"The same as --format json."`
	// Horizontal and Collapse are for svg.
	Horizontal bool `help:"With --format svg: draw from left to right."`
	Collapse   bool `help:"With --format svg: draw maps, loops and subgraphs without their insides."`
}

func (f *drawFlags) format() string {
	if f.JSON {
		return "json"
	}
	format := f.Format
	if format == "svg" && f.Horizontal {
		format += "-horizontal"
	}
	if f.Format == "svg" && f.Collapse {
		format += "-collapsed"
	}
	return format
}

func (f *drawFlags) print(a *app, drawing []byte) error {
	if f.format() == "json" {
		_, err := a.stdout.Write(escapeJSON(drawing))
		return err
	}
	_, err := a.out.Write(drawing)
	return err
}

// isRunID reports whether an argument is the id of a run, which has neither an
// extension nor a directory, and not a file.
func isRunID(arg string) bool {
	return filepath.Ext(arg) == "" && filepath.Base(arg) == arg && !exists(arg)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func (c *inspectCmd) workflowFiles() []string { return []string{c.File} }

func (c *inspectCmd) Run(a *app) error {
	a.setReport(c.reportFlags)
	if filepath.Ext(c.File) == graphExt {
		return c.drawGraph(a)
	}
	if isRunID(c.File) {
		return c.drawRun(a, &localRuns{a: a, keepFlags: c.keepFlags}, c.File, c.pluginFlags, c.reportFlags)
	}
	h, err := a.openHost(c.pluginFlags, c.reportFlags, readPlugins, host.Options{})
	if err != nil {
		return err
	}
	defer h.Close()
	wf, err := h.Load(c.File, c.loadOptions())
	if err != nil {
		return err
	}
	defer wf.Close()
	drawing, err := wf.Inspect(c.format())
	if err != nil {
		return usageError(err)
	}
	return c.print(a, drawing)
}

// graphExt is the extension of graphs in Cytoscape's JSON format.
const graphExt = ".cyjs"

// maxGraphFile is the maximum size of a graph file, whose properties are not drawn.
const maxGraphFile = 16 << 20

func (c *inspectCmd) drawGraph(a *app) error {
	text, err := confine.ReadRegular(c.File, maxGraphFile)
	if err != nil {
		return usageError(err)
	}
	if len(text) > maxGraphFile {
		return fmt.Errorf("%s has more than %d MB; export a part of the graph, with entity_ids and depth", c.File, maxGraphFile>>20)
	}
	drawing, err := host.DrawGraph(filepath.Base(c.File), text, c.format())
	if err != nil {
		return err
	}
	return c.print(a, drawing)
}

type schemaCmd struct {
	pluginFlags
	reportFlags
}

func (c *schemaCmd) Run(a *app) error {
	schema, err := a.schema(c.pluginFlags, c.reportFlags)
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(append(schema, '\n'))
	return err
}

// schema returns the JSON Schema of workflow files with the actions of the
// host and of the plugins that are found.
func (a *app) schema(plugins pluginFlags, report reportFlags) ([]byte, error) {
	a.setReport(report)
	h, err := a.openHost(plugins, report, readPlugins, host.Options{})
	if err != nil {
		return nil, err
	}
	defer h.Close()
	a.warnUnreadPlugins(report)
	schema, err := h.Schema()
	return escapeJSON(schema), err
}

type initCmd struct {
	Dir string `arg:"" optional:"" default:"." help:"Directory of the project."`
	pluginFlags
	reportFlags
}

func (c *initCmd) Run(a *app) error {
	schema, err := a.schema(c.pluginFlags, c.reportFlags)
	if err != nil {
		return err
	}
	paths, err := project.Write(c.Dir, schema)
	if err != nil {
		return err
	}
	for _, path := range paths {
		fmt.Fprintf(a.out, "wrote %s\n", path)
	}
	return nil
}

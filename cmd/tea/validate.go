package main

import (
	"fmt"

	"github.com/the-edge-agent/tea/host"
)

// loadFlags change what is read of a workflow.
type loadFlags struct {
	Config  string   `short:"C" placeholder:"JSON" help:"Lay this JSON over the workflow."`
	Overlay []string `short:"f" sep:"none" placeholder:"FILE" help:"Lay this file over the workflow (repeatable)."`
}

func (f loadFlags) loadOptions() host.LoadOptions {
	return host.LoadOptions{Overlays: f.Overlay, Config: f.Config}
}

type validateCmd struct {
	Files  []string `arg:"" name:"file" help:"Workflow files."`
	Strict bool     `help:"Find more, such as nodes that nothing leads to; warnings count as errors."`
	JSON   bool     `name:"json" help:"Print the findings as a JSON list."`
	loadFlags
	pluginFlags
	reportFlags
}

// Run checks each file.
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
	if c.JSON {
		if err := writeJSON(a.stdout, all); err != nil {
			return err
		}
	} else if len(all) > 0 {
		a.report.Diagnostics(all)
	}
	if all.HasErrors() {
		return &exitError{code: a.codeOfMistakes(all)}
	}
	return nil
}

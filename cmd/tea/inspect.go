package main

import "github.com/the-edge-agent/tea/host"

type inspectCmd struct {
	File   string `arg:"" help:"Workflow file."`
	Format string `default:"text" enum:"text,json,dot,mermaid,svg" help:"text, json, dot, mermaid or svg."`
	JSON   bool   `name:"json" help:"The same as --format json."`
	loadFlags
	pluginFlags
	reportFlags
}

// Run draws the graph on stdout.
func (c *inspectCmd) Run(a *app) error {
	a.setReport(c.reportFlags)
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
	if c.JSON {
		c.Format = "json"
	}
	drawing, err := wf.Inspect(c.Format)
	if err != nil {
		return usageError(err)
	}
	if c.Format == "json" {
		_, err = a.stdout.Write(escapeJSON(drawing))
		return err
	}
	_, err = a.out.Write(drawing)
	return err
}

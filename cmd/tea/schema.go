package main

import "github.com/the-edge-agent/tea/host"

type schemaCmd struct {
	pluginFlags
	reportFlags
}

// Run prints the JSON Schema of workflow files.
func (c *schemaCmd) Run(a *app) error {
	a.setReport(c.reportFlags)
	h, err := a.openHost(c.pluginFlags, c.reportFlags, host.Options{})
	if err != nil {
		return err
	}
	defer h.Close()
	schema, err := h.Schema()
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(append(escapeJSON(schema), '\n'))
	return err
}

package main

import "github.com/the-edge-agent/tea/host"

type schemaCmd struct {
	pluginFlags
	reportFlags
}

// Run prints the JSON Schema of workflow files.
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
	a.warnUnread(report)
	schema, err := h.Schema()
	return escapeJSON(schema), err
}

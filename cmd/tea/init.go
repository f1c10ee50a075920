package main

import (
	"fmt"

	"github.com/the-edge-agent/tea/cmd/tea/internal/project"
)

type initCmd struct {
	Dir string `arg:"" optional:"" default:"." help:"Where to write it."`
	pluginFlags
	reportFlags
}

// Run writes the project.
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

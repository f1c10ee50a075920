package main

import (
	"context"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
)

type runCmd struct {
	File string `arg:"" help:"Workflow file."`
	loadFlags
	runFlags
}

// Run runs the workflow.
func (c *runCmd) Run(a *app) error {
	return a.execute(&c.runFlags, func(h *host.Host) (*host.Workflow, error) {
		return h.Load(c.File, c.loadOptions())
	}, func(ctx context.Context, wf *host.Workflow, o host.RunOptions) (*flow.Result, error) {
		return wf.Run(ctx, o)
	})
}

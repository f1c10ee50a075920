package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
)

type forkCmd struct {
	RunID string `arg:"" name:"run" help:"Id of the run or the beginning of it, or the file of its checkpoint."`
	At    string `required:"" placeholder:"STEP" help:"Number of the last record to take over, or the path of the node after which to branch off."`
	workflowFlag
	runFlags
}

// Run starts the fork.
func (c *forkCmd) Run(a *app) error {
	dir, run, runs, err := c.openRun(a, c.RunID)
	if err != nil {
		return err
	}
	at, err := runs.Step(run, c.At)
	if err != nil {
		return noStep(err, dir, run)
	}
	err = a.continueRun(&c.runFlags, dir.path, loadOf(dir.path, run, c.Workflow, false), func(ctx context.Context, wf *host.Workflow, o host.RunOptions) (*flow.Result, error) {
		return wf.Fork(ctx, run, at, o)
	})
	if errors.Is(err, host.ErrInputUnused) {
		return usageErrorf("fork at %s: %w; `%s` lists earlier steps", c.At, host.ErrInputUnused, dir.tea("checkpoint", "show", run))
	}
	return err
}

// noStep says where to look where a run has no such step.
func noStep(err error, dir runDir, run string) error {
	if errors.Is(err, host.ErrNoStep) {
		return fmt.Errorf("%w; `%s` lists its records", err, dir.tea("checkpoint", "show", run))
	}
	return err
}

package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/workflow"
)

// generation is the version of what a run does to its history. It is raised when a
// change of the engine or the driver changes that for runs that have begun. A worker
// continues runs of its own generation only; others continue in a new execution,
// which needs the format of the records alone.
const generation = 1

// handOverSignal asks a run to continue in a new execution, by workers of a later
// generation.
const handOverSignal = "hand_over"

// pin records the generation of the worker that begins an execution, and panics on a
// worker of another one: the run waits for one of its own.
func (r *run) pin(w workflow.Context) {
	if r.worker.generation < r.start.Generation {
		panic(fmt.Errorf("the run was handed over to a later version of tea: generation %d, this worker has %d", r.start.Generation, r.worker.generation))
	}
	var began int
	err := workflow.SideEffect(w, func(workflow.Context) any { return r.worker.generation }).Get(&began)
	if err != nil || began != r.worker.generation {
		panic(fmt.Errorf("the run began with another version of tea: generation %d, this worker has %d; start a worker of that version with --hand-over", began, r.worker.generation))
	}
}

// takeSignals hands the run over when it is asked to.
func (r *run) takeSignals(w workflow.Context) {
	workflow.GoNamed(w, handOverSignal, func(w workflow.Context) {
		workflow.GetSignalChannel(w, handOverSignal).Receive(w, nil)
		r.handing, r.leaving = true, true
	})
}

// handOverAll asks all runs of a queue to continue with a later version of tea.
func (c *connection) handOverAll(ctx context.Context, queue string) (asked int, err error) {
	query := fmt.Sprintf("TaskQueue = '%s' AND ExecutionStatus = 'Running'", strings.ReplaceAll(queue, "'", "''"))
	for next := []byte(nil); ; {
		page, err := c.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, NextPageToken: next})
		if err != nil {
			return asked, fmt.Errorf("list the runs on Temporal: %w", err)
		}
		for _, info := range page.GetExecutions() {
			run := info.GetExecution().GetWorkflowId()
			err := c.client.SignalWorkflow(ctx, run, info.GetExecution().GetRunId(), handOverSignal, nil)
			if errors.As(err, new(*serviceerror.NotFound)) {
				continue // it has ended
			}
			if err != nil {
				return asked, fmt.Errorf("hand over run %s: %w", run, err)
			}
			asked++
		}
		if next = page.GetNextPageToken(); len(next) == 0 {
			return asked, nil
		}
	}
}

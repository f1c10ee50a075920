package driver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/workflow"
)

// generation is the version of a run's effect on its history. It is raised when a
// change of the engine or the driver changes that effect for existing runs. A worker
// continues only runs of its generation; others continue in a new execution, which
// depends only on the format of the records.
const generation = 1

// handOverSignal asks a run to continue in a new execution on workers of a generation
// later than its argument.
const handOverSignal = "hand_over"

// pin records the generation of the worker that begins an execution. It panics on a
// worker of another generation, so that the run waits for a suitable one.
func (r *run) pin(w workflow.Context) {
	var began int
	err := workflow.SideEffect(w, func(workflow.Context) any {
		if reason := r.worker.refuses(r.start.Generation); reason != "" {
			panic(errors.New(reason))
		}
		return r.worker.generation
	}).Get(&began)
	own := r.worker.generation
	switch {
	case err != nil:
		panic(fmt.Errorf("read the generation of the run: %w", err))
	case began < own:
		panic(fmt.Errorf("the run began with an earlier version of tea (generation %d, this worker has %d); start a worker of that version with --hand-over, and the run continues here", began, own))
	case began > own:
		panic(fmt.Errorf("the run continued with a later version of tea (generation %d, this worker has %d) and needs it from now on; start a worker of that version", began, own))
	}
}

// refuses returns why the worker does not begin an execution that needs a generation;
// "" if it does.
func (k *worker) refuses(needs int) string {
	switch {
	case k.handsOver:
		return "the run has not begun, and this worker hands runs over to a later version of tea; a worker of that version begins it"
	case k.generation < needs && !k.takesBack:
		return fmt.Sprintf("the run was handed over to a later version of tea (generation %d, this worker has %d); start a worker of that version, or take the run back with `tea worker --take-back`", needs, k.generation)
	}
	return ""
}

func (r *run) takeSignals(w workflow.Context) {
	workflow.GoNamed(w, handOverSignal, func(w workflow.Context) {
		for from := 0; ; {
			workflow.GetSignalChannel(w, handOverSignal).Receive(w, &from)
			// Runs of later workers stay with them.
			if from >= r.worker.generation {
				r.handingOver, r.needs = true, from+1
			}
		}
	})
}

// identity is the name of a worker on the server. It ends with the generation.
func (k *worker) identity() string {
	machine, _ := os.Hostname() // for people
	return fmt.Sprintf("%d@%s%s%d", os.Getpid(), machine, generationMark, k.generation)
}

const generationMark = "@tea-generation-"

// generationOf returns the generation in a worker's identity; 0 if there is none.
func generationOf(identity string) int {
	_, number, _ := strings.Cut(identity, generationMark)
	n, _ := strconv.Atoi(number)
	return n
}

// handOverAll asks all runs of a queue to continue on a later version of tea. It is an
// error if no worker of such a version polls the queue.
func (k *worker) handOverAll(ctx context.Context, queue string) (asked int, err error) {
	pollers, err := k.pollers(ctx, queue, enums.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		return 0, fmt.Errorf("find the workers of the queue %s: %w", queue, err)
	}
	if !slices.ContainsFunc(pollers, func(p *taskqueue.PollerInfo) bool { return generationOf(p.GetIdentity()) > k.generation }) {
		return 0, fmt.Errorf("no worker of a later version of tea (a generation above %d) polls the queue %s of the namespace %s at %s, and the runs would wait for one: nothing was handed over; "+
			"start workers of the new version first, and use --hand-over with the version that the runs began with", k.generation, queue, k.namespace, k.address)
	}
	query := fmt.Sprintf("TaskQueue = '%s' AND ExecutionStatus = 'Running'", strings.ReplaceAll(queue, "'", "''"))
	for next := []byte(nil); ; {
		page, err := k.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, NextPageToken: next})
		if err != nil {
			return asked, fmt.Errorf("list the runs on Temporal: %w", err)
		}
		for _, info := range page.GetExecutions() {
			run := info.GetExecution().GetWorkflowId()
			err := k.client.SignalWorkflow(ctx, run, info.GetExecution().GetRunId(), handOverSignal, k.generation)
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

package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
)

// Runs lists the runs of the queue, the newest first.
func (Engine) Runs(ctx context.Context, f teacmd.EngineFlags) ([]checkpoints.Entry, error) {
	r, err := connect(ctx, f, "", host.RunOptions{})
	if err != nil {
		return nil, err
	}
	defer r.close()
	query := fmt.Sprintf("TaskQueue = '%s'", strings.ReplaceAll(r.queue, "'", "''"))
	list, seen := []checkpoints.Entry{}, map[string]int{}
	for next := []byte(nil); ; {
		page, err := r.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, NextPageToken: next})
		if err != nil {
			return nil, fmt.Errorf("list the runs on Temporal: %w", err)
		}
		for _, info := range page.GetExecutions() {
			// A resumed run has several executions: the last one comes first, and the first one
			// has the start time.
			e := r.entry(info)
			if i, ok := seen[e.ID]; ok {
				list[i].StartedAt = e.StartedAt
				continue
			}
			seen[e.ID] = len(list)
			list = append(list, e)
		}
		if next = page.GetNextPageToken(); len(next) == 0 {
			break
		}
	}
	// The server lists running runs first.
	slices.SortFunc(list, func(a, b checkpoints.Entry) int {
		return cmp.Or(b.StartedAt.Compare(a.StartedAt), strings.Compare(b.ID, a.ID))
	})
	return list, nil
}

// entry describes a run by its execution.
func (c *connection) entry(info *workflow.WorkflowExecutionInfo) checkpoints.Entry {
	id := info.GetExecution().GetWorkflowId()
	e := checkpoints.Entry{
		ID: id, Workflow: info.GetType().GetName(), Path: "temporal:" + id, Size: info.GetHistorySizeBytes(),
		StartedAt: info.GetStartTime().AsTime(), UpdatedAt: info.GetStartTime().AsTime(), Status: statusOf(info.GetStatus()),
	}
	if end := info.GetCloseTime(); end != nil {
		e.UpdatedAt = end.AsTime()
	}
	text := func(name string) (text string) {
		if p := info.GetSearchAttributes().GetIndexedFields()[name]; p != nil {
			_ = converter.GetDefaultDataConverter().FromPayload(p, &text) // otherwise it has another type
		}
		return text
	}
	if e.Status == flow.Running {
		e.Status = flow.Status(cmp.Or(text(statusAttribute.GetName()), string(e.Status)))
	}
	e.Node = text(nodeAttribute.GetName())
	return e
}

// statusOf returns the status of a run for the status of its execution.
func statusOf(s enums.WorkflowExecutionStatus) flow.Status {
	switch s {
	case enums.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return flow.Done
	case enums.WORKFLOW_EXECUTION_STATUS_FAILED, enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return flow.Failed
	case enums.WORKFLOW_EXECUTION_STATUS_CANCELED, enums.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return flow.Stopped
	}
	return flow.Running
}

// failingTimeout bounds a query of a run that the last worker could not execute.
const failingTimeout = 5 * time.Second

// Show describes a run.
func (Engine) Show(ctx context.Context, f teacmd.EngineFlags, run string) (out teacmd.EngineRun, err error) {
	r, err := connect(ctx, f, run, host.RunOptions{})
	if err != nil {
		return out, err
	}
	defer r.close()
	about, err := r.find(ctx)
	if err != nil {
		return out, err
	}
	out.Entry = r.entry(about.GetWorkflowExecutionInfo())
	queue := about.GetExecutionConfig().GetTaskQueue().GetName()
	if r.hasNoWorker(ctx, queue, enums.TASK_QUEUE_TYPE_WORKFLOW) {
		what := "run " + run
		if out.Status != flow.Running {
			what = "the rest of the description"
		}
		out.Silent, out.Notes = true, []string{r.noWorker(what, queue)}
		return out, nil
	}
	looks, cancel := ctx, func() {}
	if about.GetPendingWorkflowTask().GetAttempt() > 1 {
		looks, cancel = context.WithTimeout(ctx, failingTimeout)
	}
	p, err := r.progress(looks, noEvents)
	cancel()
	if err != nil || p.Outcome == nil {
		out.Notes = r.problems(ctx)
	}
	if err != nil {
		// Without a worker, this is all that the server knows.
		if len(out.Notes) > 0 && ctx.Err() == nil {
			out.Silent = true
			return out, nil
		}
		return out, r.explain(ctx, err)
	}
	out.StartedAt, out.WorkflowFile, out.Digest = p.StartedAt, p.File, p.Digest
	out.Records, out.ParentRun = p.Records, p.Parent
	if !p.UpdatedAt.IsZero() {
		out.UpdatedAt = p.UpdatedAt
	}
	out.Node = cmp.Or(out.Node, p.Node)
	if p.Outcome == nil {
		return out, nil
	}
	err = p.Outcome.describe(&out)
	return out, err
}

// describe adds the outcome to the description of a run.
func (o *outcome) describe(out *teacmd.EngineRun) error {
	out.Status, out.Pending, out.Failures, out.Failure.FailedBranches = o.Status, o.Pending, o.Failures, o.FailedBranches
	// The server may lack the search attributes.
	if len(o.Pending) > 0 {
		out.Node = o.Pending[0].Path
	}
	if o.Error != nil {
		out.Error = o.Error.Message
		if o.Error.Node != nil {
			out.Node = o.Error.Node.Path
		}
	}
	if len(o.State) == 0 {
		return nil
	}
	state, err := value.Decode(o.State)
	out.State, _ = state.(map[string]any)
	return err
}

// Events calls fn with the events of a run after a number. With follow it continues
// until the run ends or waits. Events of executions that the server has removed are
// missing.
func (Engine) Events(ctx context.Context, f teacmd.EngineFlags, run string, after int64, follow bool, fn func(flow.Event)) error {
	r, err := connect(ctx, f, run, host.RunOptions{Events: fn})
	if err != nil {
		return err
	}
	defer r.close()
	r.last, r.passive = after, true
	executions, err := r.executions(ctx, after)
	if err != nil {
		return err
	}
	for i, execution := range executions {
		r.execution = execution
		if follow && i == len(executions)-1 {
			_, err := r.follow(ctx)
			return err
		}
		for more := true; more; {
			p, err := r.progress(ctx, r.last)
			if err == nil {
				err = r.emit(p)
			}
			if err != nil {
				return r.explain(ctx, err)
			}
			more = len(p.Events) > 0 && r.last < p.Last
		}
	}
	return nil
}

// executions returns the executions with the run's events after a number, in order.
func (r *follower) executions(ctx context.Context, after int64) (list []string, err error) {
	about, err := r.find(ctx)
	if err != nil {
		return nil, err
	}
	none := &follower{connection: r.connection, run: r.run}
	none.execution = about.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	for none.execution != "" {
		p, err := none.progress(ctx, noEvents)
		if errors.As(err, new(*serviceerror.NotFound)) && len(list) > 0 {
			break
		}
		if err != nil {
			return nil, r.explain(ctx, err)
		}
		list = append(list, none.execution)
		if none.execution = p.Previous; p.First <= after {
			break
		}
	}
	slices.Reverse(list)
	return list, nil
}

// stopTime bounds the wait for a canceled run.
const stopTime = 30 * time.Second

// Cancel cancels a run and waits until it has stopped. With force it ends the run
// without a worker.
func (Engine) Cancel(ctx context.Context, f teacmd.EngineFlags, run string, force bool) error {
	r, err := connect(ctx, f, run, host.RunOptions{})
	if err != nil {
		return err
	}
	defer r.close()
	if _, err := r.find(ctx); err != nil {
		return err
	}
	if force {
		err = r.client.TerminateWorkflow(ctx, run, "", "tea runs cancel --force")
	} else {
		err = r.client.CancelWorkflow(ctx, run, "")
	}
	if err != nil {
		return fmt.Errorf("cancel run %s: %w", run, err)
	}
	begin := time.Now()
	for {
		about, err := r.find(ctx)
		if err != nil {
			return err
		}
		if about.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
			return nil
		}
		took := time.Since(begin)
		if took > silent {
			if reasons := r.problems(ctx); len(reasons) > 0 {
				return errors.New(r.asked(reasons))
			}
		}
		if took > stopTime {
			return fmt.Errorf("run %s was asked to stop, and stops when its running calls have ended; `%s` ends it now", run, r.forceCommand())
		}
		if err := backoff.Sleep(ctx, waitAfter(0, took)); err != nil {
			return err
		}
	}
}

func (r *follower) forceCommand() string {
	return r.flags.Command("runs", "cancel", r.run, "--force")
}

// asked describes a canceled run and what it waits for.
func (r *follower) asked(reasons []string) string {
	return fmt.Sprintf("run %s was asked to stop and does so when a worker takes it; `%s` ends it now: %s", r.run, r.forceCommand(), strings.Join(reasons, "; "))
}

// Fork starts a run with another run's records up to a step, and follows it.
func (Engine) Fork(ctx context.Context, f teacmd.EngineFlags, run, step string, job teacmd.Job) (*flow.Result, error) {
	r, err := connect(ctx, f, run, job.Options)
	if err != nil {
		return nil, err
	}
	defer r.close()
	if r.mask, err = job.Workflow.Mask(job.Options.Secrets); err != nil {
		return nil, err
	}
	r.warn = job.Warn
	about, err := r.find(ctx)
	if err != nil {
		return nil, err
	}
	r.execution, r.queue = about.GetWorkflowExecutionInfo().GetExecution().GetRunId(), about.GetExecutionConfig().GetTaskQueue().GetName()
	def, err := r.definition(ctx)
	if err != nil {
		return nil, err
	}
	records, err := r.records(ctx)
	if err != nil {
		return nil, err
	}
	at, err := checkpoints.StepOf(run, records, step)
	if err != nil {
		return nil, err
	}
	s := start{Parent: run, Segments: 1, Local: job.Options.Durability == flow.DurabilityAsync, ResumeInput: &resumeInput{}}
	if len(job.Options.Input) > 0 {
		if s.ResumeInput.Input, err = sealed(job.Options.Input, r.mask); err != nil {
			return nil, err
		}
	}
	r.run = cmp.Or(job.Options.RunID, host.NewRunID())
	s.RunID = r.run
	if err := r.begin(ctx, about.GetWorkflowExecutionInfo().GetType().GetName(), enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE, s, def, records[:at]); err != nil {
		return nil, err
	}
	return r.result(ctx)
}

package driver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
)

// Resume answers the interrupts of a run, or continues a failed or stopped run from
// its records, and follows it.
func (Engine) Resume(ctx context.Context, f teacmd.EngineFlags, run string, job teacmd.Job) (*flow.Result, error) {
	r, err := connect(ctx, f, run, job.Options)
	if err != nil {
		return nil, err
	}
	defer r.close()
	r.warn = job.Warn
	if job.Options.Force || job.Options.Migrate {
		r.changed = &job
	}
	if r.mask, err = job.Workflow.Mask(job.Options.Secrets); err != nil {
		return nil, err
	}
	if err := r.resume(ctx, job.Options.Input, job.Options.Answers, job.Options.RetryFailed); err != nil {
		return nil, err
	}
	return r.result(ctx)
}

// resume passes input and answers to a waiting run. An ended run begins again with
// its records.
func (r *follower) resume(ctx context.Context, input, answers map[string]any, retry bool) error {
	g := resumeInput{RetryFailed: retry}
	var err error
	if len(input) > 0 {
		if g.Input, err = sealed(input, r.mask); err != nil {
			return err
		}
	}
	if len(answers) > 0 {
		if g.Answers, err = sealed(answers, r.mask); err != nil {
			return err
		}
	}
	if err := r.checkSize("the input with the answers", g); err != nil {
		return err
	}
	id := host.NewRunID()
	watched, stop := context.WithCancel(ctx)
	defer stop()
	r.lastEvent.Store(time.Now().UnixNano())
	go r.watch(watched)
	for tries := 1; ; tries++ {
		about, err := r.find(ctx)
		if err != nil {
			return err
		}
		last := r.execution
		r.execution = about.GetWorkflowExecutionInfo().GetExecution().GetRunId()
		if about.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
			r.queue = about.GetExecutionConfig().GetTaskQueue().GetName()
			return r.again(ctx, about.GetWorkflowExecutionInfo().GetType().GetName(), &g)
		}
		if r.changed != nil {
			return tea.Errorf(tea.ValidationError, "run %s has not ended and keeps its workflow until then: stop it with `%s`, and resume it with the changed one", r.run, r.flags.Command("runs", "cancel", r.run))
		}
		err = r.answer(ctx, id, g)
		switch {
		case errors.As(err, new(*serviceerror.NotFound)) && last != r.execution: // it continues in another execution
		case ctx.Err() == nil && (errors.As(err, new(*serviceerror.WorkflowNotReady)) || errors.As(err, new(*client.WorkflowUpdateServiceTimeoutOrCanceledError))): // no worker can execute it now
		case errors.As(err, new(notWaitingError)) && tries < 5: // at the start of an execution it may not wait yet
		default:
			return err
		}
		if err := backoff.Sleep(ctx, longWait); err != nil {
			return err
		}
	}
}

// notWaitingError is the error of an answer that the run does not wait for.
type notWaitingError struct{ error }

func (e notWaitingError) Unwrap() error { return e.error }

// answer passes input and answers to the current execution.
func (r *follower) answer(ctx context.Context, id string, g resumeInput) error {
	handle, err := r.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: r.run, RunID: r.execution, UpdateID: id, UpdateName: resumeUpdate, Args: []any{g}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(ctx, &r.last)
	}
	var refused *temporal.ApplicationError
	if errors.As(err, &refused) && refused.Type() == notWaiting {
		return notWaitingError{tea.Errorf(tea.ValidationError, "%s", refused.Message())}
	}
	if errors.As(err, &refused) {
		return tea.Errorf(tea.ValidationError, "%s", refused.Message())
	}
	return err
}

// again starts another execution of an ended run.
func (r *follower) again(ctx context.Context, name string, g *resumeInput) error {
	p, err := r.progress(ctx, noEvents)
	if err != nil {
		return r.explain(ctx, err)
	}
	r.last = p.Last
	if o := p.Outcome; o != nil && o.Status == flow.Done && r.changed == nil {
		switch {
		case g.RetryFailed && o.FailedBranches == 0:
			return host.ErrNothingFailed
		case !g.RetryFailed && len(g.Input) > 0:
			return fmt.Errorf("run %s is done: %w; use `tea fork` to continue from one of its steps", r.run, host.ErrInputUnused)
		case !g.RetryFailed:
			return nil // r.result returns the outcome
		}
	}
	def, err := r.definition(ctx)
	if err != nil {
		return err
	}
	records, err := r.records(ctx)
	if err != nil {
		return err
	}
	if r.changed != nil {
		if def, err = r.migrate(ctx, records); err != nil {
			return err
		}
		name, r.changed = r.changed.Workflow.Name(), nil
	}
	s := start{RunID: r.run, Segments: 1, LastSeq: p.Last, ResumeInput: g, StartedAt: p.StartedAt, Parent: p.Parent, Previous: r.execution}
	return r.begin(ctx, name, enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE, s, def, records)
}

// migrate returns the definition of the changed workflow if it fits the records.
func (r *follower) migrate(ctx context.Context, records []checkpoints.Record) (*definition, error) {
	wf, o := r.changed.Workflow, r.changed.Options
	o.RunID = r.run
	if err := wf.CheckMigration(ctx, records, o); err != nil {
		return nil, err
	}
	def, err := newDefinition(wf, r.changed.Load, o.Env)
	if err != nil {
		return nil, err
	}
	def.Store = r.storeID
	return def, r.limit(ctx, wf.Queues())
}

// records returns the records of the run.
func (r *follower) records(ctx context.Context) (records []checkpoints.Record, err error) {
	v, err := r.client.QueryWorkflow(ctx, r.run, r.execution, recordsQuery)
	if err == nil {
		err = v.Get(&records)
	}
	if refused := (*serviceerror.QueryFailed)(nil); errors.As(err, &refused) {
		return nil, tea.Errorf(tea.ResourceExhausted, "run %s: %s", r.run, refused.Message)
	}
	if err != nil {
		return nil, fmt.Errorf("fetch the records of run %s: %w", r.run, err)
	}
	return records, nil
}

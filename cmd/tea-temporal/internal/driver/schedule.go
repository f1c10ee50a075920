package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/internal/cron"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Schedule makes Temporal start a run of the workflow at each of the times. It
// replaces an existing schedule; without times it removes it.
func (e Engine) Schedule(ctx context.Context, f teacmd.EngineFlags, id string, times []string, job teacmd.Job) error {
	r, err := connect(ctx, f, id, host.RunOptions{})
	if err != nil {
		return err
	}
	values := r.storeID
	r.close()
	// --blobs stores only values of runs, so the values of a schedule are stored in the schedule.
	f.Blobs = ""
	if r, err = connect(ctx, f, id, host.RunOptions{}); err != nil {
		return err
	}
	defer r.close()
	handle := r.client.ScheduleClient().GetHandle(ctx, id)
	if len(times) == 0 {
		if err := handle.Delete(ctx); err != nil {
			if errors.As(err, new(*serviceerror.NotFound)) {
				return fmt.Errorf("there is no schedule %q in the namespace %s at %s; --schedule-id names another one", id, r.namespace, r.address)
			}
			return fmt.Errorf("remove the schedule %s: %w", id, err)
		}
		return nil
	}
	if err := checkTimes(times); err != nil {
		return err
	}
	s, def, _, err := e.prepare(job)
	if err != nil {
		return err
	}
	def.Store, s.RunID = values, "" // each run has a separate id
	if s.Key, err = def.key(); err != nil {
		return err
	}
	if err := r.checkSize("", s, def); err != nil {
		return tea.Errorf(tea.ResourceExhausted, "the input with the workflow files is larger than the 2 MB that Temporal accepts for a schedule, even with --blobs")
	}
	if err := r.limit(ctx, job.Workflow.Queues()); err != nil {
		return err
	}
	o := client.ScheduleOptions{ID: id, Spec: client.ScheduleSpec{CronExpressions: times}}
	name := job.Workflow.Name()
	action := &client.ScheduleWorkflowAction{ID: id, Workflow: name, TaskQueue: r.queue}
	if s.Attributes = r.hasAttributes(ctx); s.Attributes {
		action.TypedSearchAttributes = temporal.NewSearchAttributes(workflowAttribute.ValueSet(name), statusAttribute.ValueSet(string(flow.Running)))
	}
	action.Args = []any{s, def}
	o.Action = action
	_, err = r.client.ScheduleClient().Create(ctx, o)
	if errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		err = handle.Update(ctx, client.ScheduleUpdateOptions{DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			was := in.Description.Schedule
			was.Spec, was.Action = &o.Spec, action
			return &client.ScheduleUpdate{Schedule: &was}, nil
		}})
	}
	if errors.As(err, new(*serviceerror.InvalidArgument)) {
		return tea.Errorf(tea.ValidationError, "schedule %s at %q: %w", id, times, err)
	}
	if err != nil {
		return fmt.Errorf("create the schedule %s: %w", id, err)
	}
	return nil
}

// checkTimes refuses the cron expressions that `tea serve` refuses, such as one that
// never matches. The server checks the forms that only Temporal supports: intervals,
// seconds, years and comments.
func checkTimes(times []string) error {
	for _, text := range times {
		fields := text
		if strings.HasPrefix(text, "CRON_TZ=") || strings.HasPrefix(text, "TZ=") {
			_, fields, _ = strings.Cut(text, " ")
		}
		if n := len(strings.Fields(fields)); strings.HasPrefix(fields, "@every ") || strings.Contains(fields, "#") || n == 6 || n == 7 {
			continue
		}
		if _, hint, err := cron.Parse(fields); err != nil {
			return tea.Errorf(tea.ValidationError, "--schedule: %w\n  hint: %s", err, hint)
		}
	}
	return nil
}

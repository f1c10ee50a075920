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
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// silent is how long a run has no events before its follower looks for the cause.
const silent = 3 * time.Second

// pollAge is the age of the last poll after which a worker counts as gone. A poll
// takes a minute.
const pollAge = 75 * time.Second

// watch warns about each cause once while the run makes no progress, until ctx is
// done.
func (r *follower) watch(ctx context.Context) {
	if r.warn == nil {
		return
	}
	tick := time.NewTicker(silent)
	defer tick.Stop()
	said := map[string]bool{}
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if time.Since(time.Unix(0, r.lastEvent.Load())) < silent {
			continue
		}
		for _, reason := range r.problems(ctx) {
			if !said[reason] && ctx.Err() == nil {
				said[reason] = true
				r.warn(reason)
			}
		}
	}
}

// problems returns the reasons why the run may be stuck.
func (r *follower) problems(ctx context.Context) (reasons []string) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	about, err := r.describe(ctx, r.run, "")
	if err != nil {
		return []string{fmt.Sprintf("the Temporal server does not answer: %v", err)}
	}
	execution := about.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	if task := about.GetPendingWorkflowTask(); task != nil {
		queue := about.GetExecutionConfig().GetTaskQueue().GetName()
		switch {
		case r.hasNoWorker(ctx, queue, enums.TASK_QUEUE_TYPE_WORKFLOW):
			reasons = append(reasons, r.noWorker("run "+r.run, queue))
		case task.GetAttempt() > 1:
			reasons = append(reasons, fmt.Sprintf("no worker on the queue %s can execute run %s, which waits: %s", queue, r.run, r.taskFailure(ctx, execution)))
		}
	}
	for _, a := range about.GetPendingActivities() {
		if reason := r.activityProblem(ctx, about.GetExecutionConfig().GetTaskQueue().GetName(), a); reason != "" {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

func (r *follower) noWorker(what, queue string) string {
	return fmt.Sprintf("%s waits: no worker polls the queue %s of the namespace %s at %s; start one with `%s`",
		what, queue, r.namespace, r.address, r.flags.Worker(queue))
}

// find describes the current execution of the run.
func (r *follower) find(ctx context.Context) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	about, err := r.describe(ctx, r.run, "")
	if err != nil {
		return nil, r.explainNotFound(fmt.Errorf("find run %s on Temporal: %w", r.run, err))
	}
	return about, nil
}

// explainNotFound explains err if the server does not have the run.
func (r *follower) explainNotFound(err error) error {
	if errors.As(err, new(*serviceerror.NotFound)) {
		return fmt.Errorf("there is no run %q in the namespace %s at %s; `%s` lists the runs of the queue", r.run, r.namespace, r.address, r.flags.Command("runs"))
	}
	return err
}

// explain returns the error of an unanswered query about the run, with the reason if
// it is known.
func (r *follower) explain(ctx context.Context, err error) error {
	if errors.As(err, new(*serviceerror.NotFound)) {
		return r.explainNotFound(err)
	}
	if reasons := r.problems(ctx); len(reasons) > 0 {
		return errors.New(strings.Join(reasons, "; "))
	}
	if errors.As(err, new(*serviceerror.WorkflowNotReady)) {
		return fmt.Errorf("no worker has begun the run; if it was ended, start it again with `tea run`: %w", err)
	}
	return err
}

// activityProblem returns why a call of a run of the queue has not begun; "" if it
// has.
func (r *follower) activityProblem(ctx context.Context, own string, a *workflow.PendingActivityInfo) string {
	node := "node " + a.GetActivityType().GetName()
	if a.GetState() != enums.PENDING_ACTIVITY_STATE_SCHEDULED {
		var l live
		if a.GetHeartbeatDetails() != nil && r.data.FromPayloads(a.GetHeartbeatDetails(), &l) == nil && l.Waiting != "" {
			return node + " waits: " + l.Waiting
		}
		return ""
	}
	queue := a.GetActivityOptions().GetTaskQueue().GetName()
	switch {
	case a.GetLastFailure() != nil:
		return fmt.Sprintf("%s waits for another attempt: %s", node, r.message(a.GetLastFailure()))
	case strings.HasPrefix(queue, pluginQueue(own, "")):
		if time.Since(a.GetScheduledTime().AsTime()) < silent {
			return "" // a worker can take it
		}
		return fmt.Sprintf("%s waits for a worker of the queue %s that has the plugin %s; install it where a worker runs, with `tea plugin install`, or start another worker that has it, with `%s`",
			node, own, strings.TrimPrefix(queue, pluginQueue(own, "")), r.flags.Worker(own, "--plugins", "DIR"))
	case queue != "" && r.hasNoWorker(ctx, queue, enums.TASK_QUEUE_TYPE_ACTIVITY):
		return r.noWorker(node, queue)
	}
	return ""
}

// hasNoWorker reports whether no worker polls a queue.
func (r *follower) hasNoWorker(ctx context.Context, queue string, kind enums.TaskQueueType) bool {
	list, err := r.pollers(ctx, queue, kind)
	return err == nil && len(list) == 0
}

// pollers returns the workers that poll a queue.
func (c *connection) pollers(ctx context.Context, queue string, kind enums.TaskQueueType) ([]*taskqueue.PollerInfo, error) {
	about, err := c.client.DescribeTaskQueue(ctx, queue, kind)
	return slices.DeleteFunc(about.GetPollers(), func(p *taskqueue.PollerInfo) bool { return time.Since(p.GetLastAccessTime().AsTime()) >= pollAge }), err
}

// taskFailure returns the reason why the last workflow task failed.
func (r *follower) taskFailure(ctx context.Context, execution string) string {
	res, err := r.client.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: r.namespace, Execution: executionOf(r.run, execution), MaximumPageSize: 10,
	})
	if err != nil {
		return err.Error()
	}
	for _, e := range res.GetHistory().GetEvents() {
		if failed := e.GetWorkflowTaskFailedEventAttributes(); failed != nil {
			return r.message(failed.GetFailure())
		}
	}
	return "see the log of the workers"
}

// hiddenFailure is the message of a failure that is encrypted.
const hiddenFailure = "Encoded failure"

// message returns the message of a failure, which may be encrypted.
func (r *follower) message(f *failurepb.Failure) string {
	text := cmp.Or(r.failures.FailureToError(f).Error(), f.GetMessage())
	if f.GetEncodedAttributes() != nil && strings.HasPrefix(text, hiddenFailure) {
		return "the reason is encrypted with a key that is not in the file of --keys here; workers and clients need the same keys"
	}
	return text
}

// lost returns the error of a run that cannot be found; nil for temporary errors.
func lost(err error) error {
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		return fmt.Errorf("find the run on Temporal: %w", err)
	}
	return nil
}

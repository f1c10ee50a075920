package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Engine starts and follows runs on a Temporal server. It implements
// [teacmd.Engine].
type Engine struct {
	// handOver sets [start.HandOver] in tests.
	handOver int
}

// follower follows a run.
type follower struct {
	*connection
	flags teacmd.EngineFlags
	queue string
	run   string
	// execution is Temporal's id of the current execution of the run.
	execution string
	last      int64
	// continued is the last execution that was seen to be continued as new. Its
	// answers to later queries are complete.
	continued string
	// ended is when the run was first seen to have ended.
	ended   time.Time
	options host.RunOptions
	mask    host.Mask
	// changed, if not nil, replaces the workflow when the run begins again.
	changed *teacmd.Job
	// passive follows without cancelling the run when the context is done.
	passive bool
	// warn shows a message to the user; nil discards it.
	warn func(message string)
	// ahead holds, by activity, tokens that were passed on before the run emitted
	// them; streamed is the number of these events.
	ahead    map[string]*ahead
	streamed int64
	// lastEvent is the time of the last event, in nanoseconds.
	lastEvent atomic.Int64
}

func connect(ctx context.Context, f teacmd.EngineFlags, run string, o host.RunOptions) (*follower, error) {
	// Discard the SDK's log: it has each attempt of a query.
	c, err := dial(ctx, f.TemporalFlags, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return &follower{connection: c, flags: f, queue: cmp.Or(f.Queue, defaultQueue), run: run, options: o}, nil
}

// prepare returns the arguments of a new run.
func (e Engine) prepare(job teacmd.Job) (start, *definition, host.Mask, error) {
	o := job.Options
	s := start{
		RunID: cmp.Or(o.RunID, host.NewRunID()), InterruptBefore: o.InterruptBefore, InterruptAfter: o.InterruptAfter,
		Local: o.Durability == flow.DurabilityAsync, HandOver: e.handOver,
	}
	if err := job.Workflow.CheckInput(o.Input, o.Secrets); errors.As(err, new(*flow.InputError)) {
		return s, nil, host.Mask{}, err
	}
	mask, err := job.Workflow.Mask(o.Secrets)
	if err != nil {
		return s, nil, mask, err
	}
	def, err := newDefinition(job.Workflow, job.Load, o.Env)
	if err != nil {
		return s, nil, mask, err
	}
	if s.Input, err = sealed(o.Input, mask); err != nil {
		return s, nil, mask, fmt.Errorf("encode the input: %w", err)
	}
	return s, def, mask, nil
}

// Run starts a run and follows it until it ends or waits. When ctx is done, the run
// is canceled.
func (e Engine) Run(ctx context.Context, f teacmd.EngineFlags, job teacmd.Job) (*flow.Result, error) {
	s, def, mask, err := e.prepare(job)
	if err != nil {
		return nil, err
	}
	run, err := connect(ctx, f, s.RunID, job.Options)
	if err != nil {
		return nil, err
	}
	defer run.close()
	run.mask, run.warn, def.Store = mask, job.Warn, run.storeID
	if err := run.limit(ctx, job.Workflow.Queues()); err != nil {
		return nil, err
	}
	if err := run.begin(ctx, job.Workflow.Name(), enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE, s, def); err != nil {
		return nil, err
	}
	return run.result(ctx)
}

// limit sets the rate limits of the section queues.
func (r *follower) limit(ctx context.Context, queues map[string]host.Queue) error {
	for _, q := range queues {
		if q.PerSecond == 0 {
			continue
		}
		_, err := r.client.WorkflowService().UpdateTaskQueueConfig(ctx, &workflowservice.UpdateTaskQueueConfigRequest{
			Namespace: r.namespace, TaskQueue: q.Name, TaskQueueType: enums.TASK_QUEUE_TYPE_ACTIVITY,
			UpdateQueueRateLimit: &workflowservice.UpdateTaskQueueConfigRequest_RateLimitUpdate{
				RateLimit: &taskqueue.RateLimit{RequestsPerSecond: float32(q.PerSecond)}, Reason: "section queues of a workflow",
			},
		})
		if err != nil {
			return fmt.Errorf("limit the queue %s: %w", q.Name, err)
		}
	}
	return nil
}

// begin starts an execution of the run. again reports whether an ended execution may
// exist.
func (r *follower) begin(ctx context.Context, name string, again enums.WorkflowIdReusePolicy, s start, def *definition, more ...any) error {
	var err error
	if s.Key, err = def.key(); err != nil {
		return err
	}
	o := client.StartWorkflowOptions{
		ID: r.run, TaskQueue: r.queue, WorkflowIDReusePolicy: again, WorkflowExecutionErrorWhenAlreadyStarted: true,
	}
	if s.Attributes = r.hasAttributes(ctx); s.Attributes {
		o.TypedSearchAttributes = temporal.NewSearchAttributes(workflowAttribute.ValueSet(name), statusAttribute.ValueSet(string(flow.Running)))
	}
	args := append([]any{s, def}, more...)
	what := "the input with the workflow files"
	if len(more) > 0 {
		what = recordsOf
	}
	if err := r.checkSize(what, args...); err != nil {
		return err
	}
	// Not cancelable: otherwise it would be unknown whether the run has begun.
	handle, err := r.client.ExecuteWorkflow(context.WithoutCancel(ctx), o, name, args...)
	if there := (*serviceerror.WorkflowExecutionAlreadyStarted)(nil); errors.As(err, &there) {
		return fmt.Errorf("run %s exists on Temporal: continue it with `tea resume`, or start one with another id", r.run)
	}
	if err != nil {
		return fmt.Errorf("start the run on Temporal: %w", err)
	}
	r.execution = handle.GetRunID()
	return nil
}

// Find returns the workflow of a run, and the interrupts that wait.
func (Engine) Find(f teacmd.EngineFlags, h *host.Host, run string) (*host.Workflow, []flow.Interrupt, error) {
	ctx := context.Background()
	r, err := connect(ctx, f, run, host.RunOptions{})
	if err != nil {
		return nil, nil, err
	}
	defer r.close()
	d, err := r.definition(ctx)
	if err != nil {
		return nil, nil, err
	}
	p, err := r.progress(ctx, noEvents)
	if err != nil {
		return nil, nil, r.explain(ctx, err)
	}
	wf, err := d.load(h)
	if p.Outcome == nil {
		return wf, nil, err
	}
	return wf, p.Outcome.Pending, err
}

// definition returns the definition of the run.
func (r *follower) definition(ctx context.Context) (*definition, error) {
	d, err := fetch(ctx, r.client, r.run, r.execution)
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	if err := d.checkStore(r.storeID); err != nil {
		return nil, fmt.Errorf("run %s: %w", r.run, err)
	}
	return d, nil
}

// noEvents is the argument of progress that returns only the outcome.
const noEvents = math.MaxInt64

// progress returns the events after a number, and the state of the run.
func (r *follower) progress(ctx context.Context, after int64) (*progress, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	v, err := r.client.QueryWorkflow(ctx, r.run, r.execution, progressQuery, after)
	if err != nil {
		return nil, fmt.Errorf("follow run %s: %w", r.run, err)
	}
	p := new(progress)
	return p, v.Get(p)
}

// queryTimeout bounds a query of a run; without a worker nothing answers it.
const queryTimeout = 20 * time.Second

// lastEvents is how long the last events of an ended run are queried: a busy worker
// answers late.
const lastEvents = 15 * time.Second

// The waits between two queries of a run. A query uses the server and a worker, which the run also needs, so queries
// take at most a tenth of the time.
const (
	shortWait = 5 * time.Millisecond
	longWait  = 250 * time.Millisecond
	maxWait   = 2 * time.Second
)

// waitAfter returns the wait after a query that took look. It grows with the time that
// the run has been followed.
func waitAfter(look, followed time.Duration) time.Duration {
	return max(shortWait, min(followed/20, longWait), min(10*look, maxWait))
}

// result follows the run until it ends, or waits and nobody can be asked.
func (r *follower) result(ctx context.Context) (*flow.Result, error) {
	for {
		out, err := r.follow(ctx)
		if err != nil {
			return nil, err
		}
		res, err := out.result(r.run, "temporal:"+r.run)
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil && res.Status == flow.Stopped {
			res.Err = context.Cause(ctx)
		}
		if res.Status != flow.Waiting || r.options.Ask == nil {
			return res, nil
		}
		answers, err := r.ask(ctx, res.Pending)
		if err != nil || len(answers) == 0 {
			return res, err
		}
		if err := r.resume(ctx, nil, answers, false); err != nil {
			return nil, err
		}
	}
}

func (r *follower) ask(ctx context.Context, pending []flow.Interrupt) (map[string]any, error) {
	answers := map[string]any{}
	for _, i := range pending {
		v, err := r.options.Ask(ctx, i)
		switch {
		case errors.Is(err, flow.ErrNobody):
			return nil, nil
		case err != nil:
			return nil, err
		}
		answers[i.ID] = v
	}
	return answers, nil
}

// follow passes on events until the run has an outcome. When ctx is done, it cancels
// the run and continues.
func (r *follower) follow(ctx context.Context) (*outcome, error) {
	inner := context.WithoutCancel(ctx)
	watched, stopWatch := context.WithCancel(inner)
	defer stopWatch()
	r.lastEvent.Store(time.Now().UnixNano())
	go r.watch(watched)
	begin, execution, stop, end := time.Now(), "", ctx.Done(), (<-chan struct{})(nil)
	looks := ctx // a query without a worker takes long
	asked, unasked := false, error(nil)
	for {
		if execution != r.execution {
			execution, end = r.execution, r.ends(watched)
		}
		if stop == nil && !asked {
			unasked = r.cancelRun(inner)
			asked = unasked == nil
		}
		look := time.Now()
		p, err := r.progress(looks, r.last)
		if err == nil {
			if err := r.emit(p); err != nil {
				return nil, err
			}
			if p.Outcome != nil && r.last >= p.Last {
				return p.Outcome, nil
			}
		}
		wait := waitAfter(time.Since(look), time.Since(begin))
		if stop != nil && ctx.Err() != nil {
			wait = maxWait // stop is ready
		} else if err != nil || len(p.Events) == 0 {
			out, gone := r.closed(inner, err == nil)
			if out != nil || gone != nil {
				return out, gone
			}
			if stop == nil && err != nil {
				if left := r.stopFailed(inner, unasked); left != nil {
					return left, nil
				}
			}
		} else {
			r.lastEvent.Store(time.Now().UnixNano())
			if r.last < p.Last {
				wait = 0
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-end:
			end = nil
		case <-stop:
			if stop, looks = nil, inner; r.passive {
				return nil, ctx.Err()
			}
		}
		timer.Stop()
	}
}

// cancelRun cancels the run.
func (r *follower) cancelRun(ctx context.Context) error {
	err := r.client.CancelWorkflow(ctx, r.run, "")
	if errors.As(err, new(*serviceerror.NotFound)) {
		return nil // the run has ended
	}
	return err
}

// stopFailed returns the outcome of a run that should stop but cannot now, with a warning;
// nil if it can. unasked is the error of the cancellation.
func (r *follower) stopFailed(ctx context.Context, unasked error) *outcome {
	reasons := r.problems(ctx)
	if len(reasons) == 0 {
		return nil
	}
	text := r.asked(reasons)
	if unasked != nil {
		text = fmt.Sprintf("run %s was not stopped and continues when the server is back: %v; stop it then with `%s`", r.run, unasked, r.flags.Command("runs", "cancel", r.run))
	}
	if r.warn != nil {
		r.warn(text)
	}
	return stoppedBy(text)
}

// stoppedBy returns the outcome of a run that did not record one.
func stoppedBy(message string) *outcome {
	return &outcome{Status: flow.Stopped, State: []byte("{}"), Error: &ending{Message: message}}
}

// ends returns a channel that is closed when the execution has ended or cannot be
// watched.
func (r *follower) ends(ctx context.Context) <-chan struct{} {
	end := make(chan struct{})
	history := r.client.GetWorkflowHistory(ctx, r.run, r.execution, true, enums.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	go func() {
		defer close(end)
		_, _ = history.Next() // the next query returns the error
	}()
	return end
}

func (r *follower) emit(p *progress) error {
	for i := range p.Events {
		e, err := p.Events[i].flow(r.run)
		if err != nil {
			return fmt.Errorf("read an event of run %s: %w", r.run, err)
		}
		r.last = e.Seq
		if r.options.Events != nil && !r.wasStreamed(&e) {
			e.Seq += r.streamed // keeps the total number of events
			r.options.Events(e)
		}
	}
	return nil
}

// closed checks an execution without new events. It moves on to the run's next
// execution, and returns the outcome of one that has ended and does not answer.
func (r *follower) closed(ctx context.Context, answers bool) (*outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	about, err := r.describe(ctx, r.run, r.execution)
	if err != nil {
		return nil, lost(err)
	}
	switch about.GetWorkflowExecutionInfo().GetStatus() {
	case enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
		r.emitLive(about.GetPendingActivities())
		return nil, nil
	case enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		if !answers || r.continued != r.execution {
			r.continued = r.execution
			return nil, nil
		}
		return nil, r.follows(ctx)
	}
	var out *outcome
	err = r.client.GetWorkflow(ctx, r.run, r.execution).GetWithOptions(ctx, &out, client.WorkflowRunGetOptions{DisableFollowingRuns: true})
	var app *temporal.ApplicationError
	var canceled *temporal.CanceledError
	switch {
	case errors.As(err, new(*temporal.TerminatedError)):
		return stoppedBy("the run was terminated on the Temporal server"), nil
	case err == nil, errors.As(err, &canceled) && canceled.Details(&out) == nil && out != nil:
	case errors.As(err, &app) && app.HasDetails() && app.Details(&out) == nil && out != nil:
	case errors.As(err, &app):
		return nil, tea.Errorf(tea.ErrorType(app.Type()), "%s", app.Message())
	default:
		return nil, fmt.Errorf("run %s: %w", r.run, err)
	}
	if r.ended.IsZero() {
		r.ended = time.Now()
	}
	if took := time.Since(r.ended); answers || took < lastEvents || took < 4*lastEvents && !r.hasNoWorker(ctx, r.queue, enums.TASK_QUEUE_TYPE_WORKFLOW) {
		return nil, nil // its last events follow
	}
	if r.warn != nil && r.options.Events != nil {
		r.warn(fmt.Sprintf("no worker sent the last events of run %s; show them later with `%s`", r.run, r.flags.Command("runs", "events", r.run)))
	}
	return out, nil
}

// follows moves on to the next execution.
func (r *follower) follows(ctx context.Context) error {
	history := r.client.GetWorkflowHistory(ctx, r.run, r.execution, false, enums.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	for history.HasNext() {
		e, err := history.Next()
		if err != nil {
			return lost(err)
		}
		if next := e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId(); next != "" {
			r.execution = next
		}
	}
	return nil
}

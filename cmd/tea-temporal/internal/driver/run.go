package driver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// The queries and updates of a run.
const (
	progressQuery = "progress"
	resumeUpdate  = "resume"
	hostUpdate    = "host"
)

// These bound the number and size of the events in one answer: the server refuses
// larger answers.
const (
	maxProgress     = 500
	maxProgressSize = 1 << 20
)

// progress is the answer to the query progress: the events after a number.
type progress struct {
	Events []event `json:"events,omitempty"`
	// Last is the number of the last event so far.
	Last int64 `json:"last"`
	// First is the number of the last event before the execution, and Previous the
	// execution that has it.
	First    int64  `json:"first,omitempty"`
	Previous string `json:"previous,omitempty"`
	// StartedAt is when the run began, UpdatedAt the time of the last event of the
	// execution.
	StartedAt time.Time `json:"started_at"`
	UpdatedAt time.Time `json:"updated_at,omitzero"`
	// Node is the path of the last record, and Records the number of records.
	Node    string `json:"node,omitempty"`
	Records int    `json:"records,omitempty"`
	// File is the workflow file with which the run began, Digest the digest of its
	// files, and Parent the run of which this one is a fork.
	File   string `json:"file,omitempty"`
	Digest string `json:"digest,omitempty"`
	Parent string `json:"parent,omitempty"`
	// Outcome is set while the run waits and after it has ended.
	Outcome *outcome `json:"outcome,omitempty"`
}

// run is one execution of a run inside of a Temporal workflow.
type run struct {
	worker *worker
	start  start
	def    definition
	wf     *loaded
	rt     *runtime

	segments [][]checkpoints.Record
	records  []checkpoints.Record
	events   []event
	lastSeq  int64
	nodes    int // that have begun in this execution
	outcome  *outcome
	// opened are the started nodes and branches that have not ended; repeated are
	// those whose start an earlier execution has emitted.
	opened, repeated map[string]bool

	// began are the paths of nodes that have made a call in this execution.
	began       map[string]bool
	handingOver bool
	// needs is the generation for the next execution if the run was asked to continue
	// with a later one.
	needs       int
	open        map[string]*openCall
	resumeInput *resumeInput
	// elsewhere are the bundles that some worker of the run's queue lacks.
	elsewhere map[string]bool
}

// execute is the Temporal workflow for all workflows of tea.
func (k *worker) execute(w workflow.Context, args converter.EncodedValues) (*outcome, error) {
	r := &run{worker: k, open: map[string]*openCall{}, began: map[string]bool{}, opened: map[string]bool{}, repeated: map[string]bool{}, elsewhere: map[string]bool{}}
	err := r.read(args)
	if err == nil {
		r.wf, err = k.workflows.get(r.start.Key, func() (*definition, error) { return &r.def, nil })
	}
	if err != nil {
		// This worker lacks a plugin, the blobs or a key. The run waits for a worker that
		// has it.
		panic(err)
	}
	defer k.workflows.release(r.wf)
	// Runs of a schedule have no id.
	r.start.RunID = cmp.Or(r.start.RunID, workflow.GetInfo(w).WorkflowExecution.ID)
	r.pin(w)
	r.rt = newRuntime(w)
	r.rt.mask, r.rt.task.stored = r.wf.mask, r.def.Store != ""
	r.resumeInput = r.start.ResumeInput
	if r.start.StartedAt.IsZero() {
		r.start.StartedAt = workflow.Now(w)
	}
	if err := r.handle(w); err != nil {
		return nil, refuse(err)
	}
	err = r.drive(w)
	// Handlers of canceled calls end, too.
	rest, cancel := workflow.NewDisconnectedContext(w)
	defer cancel()
	if wait := workflow.Await(rest, func() bool { return workflow.AllHandlersFinished(w) }); wait != nil && err == nil {
		err = wait
	}
	return r.end(w, err)
}

// read decodes the arguments.
func (r *run) read(args converter.EncodedValues) error {
	if err := args.Get(&r.start); err != nil {
		return fmt.Errorf("read the start of the run: %w", err)
	}
	r.segments = make([][]checkpoints.Record, r.start.Segments)
	into := []any{&r.start, &r.def}
	for i := range r.segments {
		into = append(into, &r.segments[i])
	}
	if err := args.Get(into...); err != nil {
		return fmt.Errorf("read the start of the run: %w", err)
	}
	r.records = slices.Concat(r.segments...)
	r.lastSeq = r.start.LastSeq
	for _, key := range r.start.Opened {
		r.opened[key], r.repeated[key] = true, true
	}
	return nil
}

// refuse is the error of a run that could not start or continue.
func refuse(err error) error {
	e := tea.AsError(err)
	return temporal.NewNonRetryableApplicationError(e.Message, string(e.Type), nil)
}

// drive runs the engine until the run has ended or is handed over.
func (r *run) drive(w workflow.Context) error {
	// Only cancel cancels the engine's contexts: Temporal would cancel the contexts
	// of coroutines before the engine knows the cause.
	engine, _ := workflow.NewDisconnectedContext(w)
	ctx, cancel := r.rt.WithCancel(withCoroutine(context.Background(), engine))
	defer cancel(nil)
	workflow.GoNamed(w, "cancel", func(w workflow.Context) {
		w.Done().Receive(w, nil)
		cancel(&canceled{})
	})
	r.takeSignals(engine)
	for {
		res, err := r.turn(ctx)
		clear(r.repeated)
		if err != nil {
			return err
		}
		if r.handingOver && res.Status == flow.Waiting {
			r.start.Steps = res.Usage.Steps - r.unfinished(res)
			return errHandOver
		}
		if r.outcome, err = newOutcome(res, r.wf.mask); err != nil {
			return err
		}
		r.limitOutcome(ctx)
		if res.Status != flow.Waiting {
			return nil
		}
		r.attribute(w, flow.Waiting, res.Pending[0].Path)
		err = r.await(w, res.Pending)
		if err == nil {
			r.attribute(w, flow.Running, "")
		}
		if err != nil {
			// Canceled while it waited.
			r.outcome.Status, r.outcome.Pending = flow.Stopped, nil
			r.outcome.Error = &ending{Message: (&canceled{}).Error()}
			return nil
		}
		if r.resumeInput == nil && r.needs > 0 {
			return errHandOver
		}
		r.outcome = nil
	}
}

// limitOutcome drops a state that is too large for Temporal, and waits for a task with room for
// the outcome.
func (r *run) limitOutcome(ctx context.Context) {
	if err := tooLarge("the state", len(r.outcome.State), r.rt.task.stored); err != nil {
		if r.outcome.State = []byte("{}"); r.outcome.Status == flow.Done {
			r.outcome.fail(err)
		}
	}
	if err := r.worker.checkSize("the state with the errors and the questions", r.outcome); err != nil {
		r.outcome.State, r.outcome.Pending, r.outcome.Failures = []byte("{}"), nil, nil
		r.outcome.fail(err)
	}
	if r.outcome.Status != flow.Waiting {
		r.rt.task.take(ctx, len(r.outcome.State))
	}
}

// errHandOver reports that the run continues in a new execution.
var errHandOver = errors.New("hand over")

// canceled is the cancellation cause of a run.
type canceled struct{}

func (*canceled) Error() string { return "stopped by a cancellation" }

// Unwrap classifies the error as canceled.
func (*canceled) Unwrap() error { return context.Canceled }

// turn runs the engine from the current records to the end of the run or an interrupt.
func (r *run) turn(ctx context.Context) (*flow.Result, error) {
	o := host.RunOptions{
		RunID: r.start.RunID, Secrets: r.worker.workflows.secrets, Env: r.wf.env, Hold: true,
		InterruptBefore: r.start.InterruptBefore, InterruptAfter: r.start.InterruptAfter,
		Middleware: r.call, Events: r.event,
	}
	var err error
	if len(r.records) == 0 {
		if o.Input, err = object(r.start.Input, r.wf.mask); err != nil {
			return nil, err
		}
	}
	if g := r.resumeInput; g != nil {
		if o, err = r.options(o, g); err != nil {
			return nil, err
		}
		r.resumeInput = nil
	}
	return r.wf.Drive(ctx, o, host.Drive{
		Runtime: r.rt, Place: r.place(), StartedAt: r.start.StartedAt, Records: slices.Clone(r.records), Steps: r.steps(),
		Append: func(rec checkpoints.Record) { r.records = append(r.records, rec) },
	})
}

// unfinished counts the started nodes that begin again after a hand-over.
func (r *run) unfinished(res *flow.Result) (n int) {
	for key := range r.opened {
		if strings.HasPrefix(key, "node ") {
			n++
		}
	}
	for _, i := range res.Pending {
		if i.Kind == flow.InterruptBefore {
			n++
		}
	}
	return n
}

// steps returns the number of steps before the execution on the first call, then 0.
func (r *run) steps() int {
	n := r.start.Steps
	r.start.Steps = 0
	return n
}

func (r *run) place() string { return "temporal:" + r.start.RunID }

// options adds the input of a resume.
func (r *run) options(o host.RunOptions, g *resumeInput) (host.RunOptions, error) {
	var err error
	if o.Input, err = object(g.Input, r.wf.mask); err != nil {
		return o, err
	}
	o.Answers, err = object(g.Answers, r.wf.mask)
	o.RetryFailed = g.RetryFailed
	return o, err
}

// await waits until the run is resumed, or the deadline of a question has passed.
func (r *run) await(w workflow.Context, pending []flow.Interrupt) error {
	resumed := func() bool { return r.resumeInput != nil || r.needs > 0 }
	var deadline time.Time
	for _, i := range pending {
		if !i.Deadline.IsZero() && (deadline.IsZero() || i.Deadline.Before(deadline)) {
			deadline = i.Deadline
		}
	}
	if deadline.IsZero() {
		return workflow.Await(w, resumed)
	}
	_, err := workflow.AwaitWithTimeout(w, max(0, deadline.Sub(workflow.Now(w))), resumed)
	return err
}

// end returns the outcome of the execution as Temporal shows it.
func (r *run) end(w workflow.Context, err error) (*outcome, error) {
	switch {
	case errors.Is(err, errHandOver):
		return nil, r.next(w)
	case err != nil && errors.As(err, new(*temporal.CanceledError)):
		return nil, err
	case err != nil:
		return nil, refuse(err)
	case r.outcome.Status == flow.Done:
		r.attribute(w, flow.Done, "")
		return r.outcome, nil
	}
	node := ""
	if e := r.outcome.Error; e != nil && e.Node != nil {
		node = e.Node.Path
	}
	r.attribute(w, r.outcome.Status, node)
	message, kind := string(r.outcome.Status), string(r.outcome.Status)
	if e := r.outcome.Error; e != nil {
		message = e.Message
		if e.Failure != nil {
			kind = string(e.Failure.Type)
		}
	}
	if w.Err() != nil {
		return nil, temporal.NewCanceledError(r.outcome)
	}
	return nil, temporal.NewApplicationErrorWithOptions(shown(message), kind, temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{r.outcome}})
}

// maxSegment is the size at which a segment of the records is full. An unchanged
// segment is not stored again.
const maxSegment = 512 << 10

// next returns the error that continues the run in a new execution.
func (r *run) next(w workflow.Context) error {
	next := r.start
	next.LastSeq, next.ResumeInput, next.Opened, next.Previous = r.lastSeq, r.resumeInput, nil, ""
	// A run that was taken back stays with the workers that took it back.
	next.Generation = cmp.Or(r.needs, min(next.Generation, r.worker.generation))
	for key := range r.opened {
		next.Opened = append(next.Opened, key)
	}
	slices.Sort(next.Opened)
	kept := 0
	for _, s := range r.segments {
		kept += len(s)
	}
	segments, more := r.segments, r.records[kept:]
	if n := len(segments); n > 0 && sizeOf(segments[n-1]) < maxSegment {
		segments, more = segments[:n-1], r.records[kept-len(segments[n-1]):]
	}
	segments = append(slices.Clone(segments), more)
	next.Segments = len(segments)
	args := []any{next, r.def}
	for _, s := range segments {
		args = append(args, s)
	}
	if err := r.worker.checkSize(recordsOf, args...); err != nil {
		return refuse(err)
	}
	return workflow.NewContinueAsNewError(w, workflow.GetInfo(w).WorkflowType.Name, args...)
}

func sizeOf(records []checkpoints.Record) (size int) {
	for _, r := range records {
		size += len(r.Body) + len(r.Path)
	}
	return size
}

// event stores an event for followers of the run. A hand-over is not visible in the
// events.
func (r *run) event(e flow.Event) {
	key, begins, ends := span(e)
	switch {
	case r.handingOver && (e.Type == flow.EventCheckpoint || e.Type == flow.EventRunEnd && e.Text("status") == string(flow.Waiting)):
		return
	case begins && r.repeated[key]:
		delete(r.repeated, key)
		return
	case begins:
		r.opened[key] = true
		if e.Type == flow.EventNodeStart {
			r.nodes++
			workflow.SetCurrentDetails(r.rt.root, fmt.Sprintf("Node %d: `%s`", r.nodes, e.Path))
		}
	case ends:
		delete(r.opened, key)
		delete(r.repeated, key)
	}
	out, err := newEvent(e)
	if err != nil {
		return // its fields have no JSON; a local run does not print it either
	}
	if err := tooLarge("the event", out.size(), r.rt.task.stored); err != nil {
		out.Fields, _ = value.Encode([]any{"error", err.Error()})
	}
	r.lastSeq++
	out.Seq = r.lastSeq
	r.events = append(r.events, out)
}

// span returns the node or branch that an event begins or ends.
func span(e flow.Event) (key string, begins, ends bool) {
	kind, edge, _ := strings.Cut(string(e.Type), "_")
	switch e.Type {
	case flow.EventRunStart, flow.EventNodeStart, flow.EventBranchStart:
		begins = true
	case flow.EventRunEnd, flow.EventNodeEnd, flow.EventNodeError, flow.EventBranchEnd:
		ends = edge != ""
	}
	return kind + " " + e.Path, begins, ends
}

// handle answers queries and updates.
func (r *run) handle(w workflow.Context) error {
	queries := map[string]any{
		definitionQuery: func() (*definition, error) { return &r.def, nil },
		progressQuery:   func(after int64) (*progress, error) { return r.progress(w, after), nil },
		recordsQuery:    func() ([]checkpoints.Record, error) { return r.records, r.worker.checkSize(recordsOf, r.records) },
	}
	for name, handler := range queries {
		if err := workflow.SetQueryHandler(w, name, handler); err != nil {
			return err
		}
	}
	err := workflow.SetUpdateHandlerWithOptions(w, resumeUpdate, func(_ workflow.Context, g resumeInput) (int64, error) {
		r.resumeInput = &g
		return r.lastSeq, nil
	}, workflow.UpdateHandlerOptions{Validator: r.checkResume})
	if err != nil {
		return err
	}
	return workflow.SetUpdateHandlerWithOptions(w, hostUpdate, r.hostCall, workflow.UpdateHandlerOptions{})
}

// progress returns the events after a number.
func (r *run) progress(w workflow.Context, after int64) *progress {
	p := &progress{
		Last: r.lastSeq, First: r.start.LastSeq, Previous: cmp.Or(workflow.GetInfo(w).ContinuedExecutionRunID, r.start.Previous),
		StartedAt: r.start.StartedAt, Records: len(r.records), File: r.def.Source.File, Digest: r.def.Source.Digest, Parent: r.start.Parent,
	}
	if n := len(r.records); n > 0 {
		p.Node = r.records[n-1].Path
	}
	if n := len(r.events); n > 0 {
		p.UpdatedAt = r.events[n-1].Time
	}
	from := min(max(after-p.First, 0), int64(len(r.events)))
	p.Events = r.events[from:]
	size := 0
	for i := range p.Events {
		if size += p.Events[i].size(); i > 0 && (size > maxProgressSize || i == maxProgress) {
			p.Events = p.Events[:i]
			return p
		}
	}
	// A large state comes without events.
	if r.outcome != nil && (len(p.Events) == 0 || size+len(r.outcome.State) <= maxProgressSize) {
		p.Outcome = r.outcome
	}
	return p
}

// recordsQuery is the query that returns the records of a run, and recordsOf names
// them in messages.
const (
	recordsQuery = "records"
	recordsOf    = "the record of what the run has done"
)

// notWaiting is the error type for an answer that the run does not wait for.
const notWaiting = "not_waiting"

// checkResume refuses input and answers that the run cannot accept.
func (r *run) checkResume(g resumeInput) error {
	if r.outcome == nil || r.outcome.Status != flow.Waiting || r.resumeInput != nil {
		return temporal.NewApplicationError(fmt.Sprintf("run %s does not wait for an answer", r.start.RunID), notWaiting)
	}
	o, err := r.options(host.RunOptions{Secrets: r.worker.workflows.secrets, Env: r.wf.env}, &g)
	if err != nil {
		return err
	}
	err = r.wf.CheckResume(r.records, o, r.rt.Now())
	if refused := (*tea.Error)(nil); errors.As(err, &refused) {
		return errors.New(refused.Message) // the type is added where it is shown
	}
	return err
}

// call is the middleware of the run: it executes a call as an activity, unless the
// action belongs to the run.
func (r *run) call(ctx context.Context, req *tea.Request, next func(context.Context, *tea.Request) (*tea.Response, error)) (*tea.Response, error) {
	entry := r.wf.Action(req.Action)
	if entry == nil || isRepeated(entry, req) {
		return next(ctx, req)
	}
	if req.Action == "time.sleep" {
		return r.sleep(ctx, req)
	}
	if entry.Replay.Local && entry.Kind == "host" {
		return r.logs(ctx, req, next)
	}
	// A node that has made a call ends in this execution; the next one would repeat the call.
	if !r.began[req.Node] {
		if r.start.HandOver > 0 && len(r.began) >= r.start.HandOver || workflow.GetInfo(r.rt.root).GetContinueAsNewSuggested() {
			r.handingOver = true
		}
		if r.handingOver {
			return nil, host.ErrHandOver
		}
		r.began[req.Node] = true
	}
	return r.activity(ctx, req)
}

// logs makes a call that logs, in this process. A replay does not repeat the call, so
// its log records are stored with its result.
func (r *run) logs(ctx context.Context, req *tea.Request, next func(context.Context, *tea.Request) (*tea.Response, error)) (*tea.Response, error) {
	out, err := r.rt.outcome(ctx, req.Action, func(ctx context.Context) (answer, error) {
		h := &logKeeper{Host: req.Host, mask: r.wf.mask}
		inner := *req
		inner.Host = h
		res, err := next(ctx, &inner)
		var v any
		if err == nil {
			v, err = res.Result.Value()
		}
		out, err := newAnswer(v, err, r.wf.mask)
		out.Notices = h.notices
		return out, err
	})
	for _, n := range out.Notices {
		n.pass(ctx, req.Host)
	}
	v, err := out.value(ctx, r.wf.mask, err)
	if err != nil {
		return nil, err
	}
	return tea.Respond(v), nil
}

// logKeeper is the host of a call that logs. It keeps the log records.
type logKeeper struct {
	tea.Host
	mask    host.Mask
	notices []notice
}

// Log keeps a record.
func (h *logKeeper) Log(_ context.Context, level slog.Level, message string, fields map[string]any) {
	h.notices = append(h.notices, logged(level, message, fields, h.mask))
}

// isRepeated reports whether an action runs in the Temporal workflow, also in a replay.
func isRepeated(entry *host.ActionEntry, req *tea.Request) bool {
	if entry.Kind != "host" || !entry.Replay.Repeat {
		return entry.Kind == "lua"
	}
	v, _ := req.Params.Shared()
	params, _ := v.(map[string]any)
	return !slices.ContainsFunc(entry.Replay.Unless, func(name string) bool { _, given := params[name]; return given })
}

// sleep implements time.sleep with a durable timer.
func (r *run) sleep(ctx context.Context, req *tea.Request) (*tea.Response, error) {
	var params struct {
		Seconds float64 `json:"seconds"`
	}
	raw, err := req.Params.JSON()
	if err == nil {
		err = json.Unmarshal(raw, &params)
	}
	if err != nil || params.Seconds < 0 || params.Seconds > 31622400 {
		return nil, tea.Errorf(tea.ValidationError, "time.sleep: seconds must be a number from 0 to 31622400")
	}
	if err := r.rt.Sleep(ctx, time.Duration(params.Seconds*float64(time.Second))); err != nil {
		return nil, err
	}
	return tea.Respond(map[string]any{"success": true, "seconds": params.Seconds}), nil
}

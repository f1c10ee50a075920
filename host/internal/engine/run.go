package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sort"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/engine/replay"
	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/host/internal/tracecontext"
	"github.com/the-edge-agent/tea/internal/execpath"
	tea "github.com/the-edge-agent/tea/sdk"
)

// run is one execution of a graph.
type run struct {
	o       Options
	replay  *replay.Replay
	log     *slog.Logger
	started time.Time
	cancel  context.CancelCauseFunc
	steps   atomic.Int64
	// recursions counts the runs of workflows inside themselves.
	recursions atomic.Int64
	breakers   breakers
	failures   failures

	traceOnce sync.Once
	trace     tracecontext.Trace

	eventMu sync.Mutex
	seq     int64

	mu      sync.Mutex
	pending []flow.Interrupt
	// suspended reports whether there has been a pending interrupt, metered whether
	// anything has been added to a meter: most runs need no lock to know that.
	suspended, metered atomic.Bool
	usage              flow.Usage
	clock              workClock
	notes              map[noteName]any
	// seen are the walked recorded paths, with whether the paths inside are
	// walked; nil if not needed.
	seen map[execpath.Path]bool
	// empty is shared by calls without parameters and by updates of containers without
	// an output; it must not be modified.
	empty map[string]any
	// root is the frame of the workflow's own nodes.
	root frame
	// last is the path of the last started node, for status records.
	last execpath.Path
	// inputTaken is set when the input of a resume is merged.
	inputTaken      atomic.Bool
	recordInputOnce sync.Once
	recordInputErr  error
}

// ErrInputUnused is the error of a resume with input for a run that is already
// done: nothing has changed.
var ErrInputUnused = errors.New("nothing is left to run: the input would change nothing")

// Execute runs a graph to its end, an interrupt, a failure or the end of ctx.
// The error reports a failure of the run itself: the journal cannot be written
// or the records do not fit. The outcome of the workflow is in the result.
func Execute(ctx context.Context, o Options) (*flow.Result, error) {
	r := &run{o: o, log: o.Logger, seq: o.FirstSeq, empty: map[string]any{}}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.started = r.now()
	var err error
	if r.replay, err = replay.New(o.Replay, o.Secrets, o.RetryFailed); err != nil {
		return nil, fmt.Errorf("read the checkpoint: %w", err)
	}
	r.usage = r.replay.Used
	r.steps.Store(int64(max(r.usage.Steps, o.Steps)))
	if err := r.beginRetry(); err != nil {
		return nil, err
	}
	root, err := r.begin()
	if err != nil {
		return nil, err
	}
	if rt := o.Runtime; rt != nil {
		ctx = expr.WithRandom(ctx, rt.Random)
	}
	ctx, r.cancel = r.withCancel(ctx)
	defer r.cancel(nil)
	ctx, stop := r.withLimits(ctx)
	defer stop()
	defer r.startClock(ctx)()
	err = root.walk(ctx)
	if err == nil && r.replay.Resumed() && len(o.Input) > 0 && !r.inputTaken.Load() && !(r.isRepeated() && r.replay.InputMerged) {
		return nil, ErrInputUnused
	}
	return r.finish(ctx, root, err)
}

func (r *run) now() time.Time {
	if r.o.Now != nil {
		return r.o.Now()
	}
	if r.o.Runtime != nil {
		return r.o.Runtime.Now()
	}
	return time.Now()
}

// begin returns the root frame and writes the start record of a new run.
func (r *run) begin() (*frame, error) {
	wf := r.o.workflow()
	input := r.o.Input
	if r.replay.Resumed() {
		input = r.replay.Start.Input
	}
	initial, err := r.o.Graph.Schema.Initial(wf.InitialState, input)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "%w", err)
	}
	if !r.replay.Resumed() && r.o.Journal != nil {
		if err := r.append("", &replay.Start{Input: orEmpty(input), Origin: r.o.Origin}); err != nil {
			return nil, err
		}
	}
	if r.replay.Resumed() && wf.Budget.Duration > 0 {
		if err := r.append("", &replay.Session{}); err != nil {
			return nil, err
		}
	}
	if r.listening() {
		fields := []flow.Field{field("workflow", wf.Name)}
		if r.replay.Resumed() {
			fields = append(fields, field("resumed", true))
		}
		r.emit(flow.EventRunStart, "", "", fields...)
	}
	if r.o.Callbacks.FlowStart != nil {
		r.o.Callbacks.FlowStart(r.o.RunID)
	}
	r.root.begin(r, r.o.Graph, initial)
	return &r.root, nil
}

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

// withLimits adds the workflow's timeout.
func (r *run) withLimits(ctx context.Context) (context.Context, context.CancelFunc) {
	wf := r.o.workflow()
	d := wf.Config.Timeout
	if d <= 0 {
		return ctx, func() {}
	}
	return r.withTimeout(ctx, d, tea.Errorf(tea.Timeout, "the run took longer than config.timeout_seconds (%s)", d))
}

// finish writes the run's status and returns its result.
func (r *run) finish(ctx context.Context, root *frame, err error) (*flow.Result, error) {
	res := &flow.Result{RunID: r.o.RunID, State: root.state.Values(), Started: r.started}
	r.mu.Lock()
	res.Usage = r.usage
	for _, i := range r.pending {
		if i.Kind != interruptInner {
			res.Pending = append(res.Pending, i)
		}
	}
	sort.Slice(res.Pending, func(i, j int) bool { return res.Pending[i].ID < res.Pending[j].ID })
	r.mu.Unlock()
	res.Usage.Steps = int(r.steps.Load())
	res.Failures, res.FailedBranches = r.failures.first, r.failures.branches
	res.Status, res.Err = r.statusOf(ctx, err)
	if res.Status != flow.Waiting {
		res.Pending = nil
	}
	if spent := r.passedBudget(); res.Status == flow.Done && spent != nil {
		r.log.Warn(fmt.Sprintf("the run's last request passed the budget: %s (%s)", spent.Limit, spent.Used))
	}
	if err := r.close(res); err != nil {
		return nil, err
	}
	res.Elapsed = r.now().Sub(r.started)
	r.emitEnd(res)
	return res, nil
}

// statusOf returns the status of a run whose root frame ended with an error,
// and the error to report.
func (r *run) statusOf(ctx context.Context, err error) (flow.Status, error) {
	if err == nil {
		return flow.Done, nil
	}
	var budget *flow.BudgetError
	cause := context.Cause(ctx)
	switch {
	case errors.Is(err, errSuspended):
		return flow.Waiting, nil
	case errors.As(cause, &budget):
		return flow.Stopped, budget
	case errors.As(err, &budget):
		return flow.Stopped, budget
	case cause != nil:
		var timeout *tea.Error
		if errors.As(cause, &timeout) && timeout.Type == tea.Timeout {
			return flow.Failed, timeout
		}
		if errors.As(cause, new(*flow.NodeError)) {
			return flow.Failed, cause
		}
		return flow.Stopped, cause
	}
	return flow.Failed, err
}

// close stores the status record and makes the journal durable.
func (r *run) close(res *flow.Result) error {
	if r.o.Journal == nil {
		return nil
	}
	res.Checkpoint = r.o.Journal.Path()
	if r.replay.Done && r.last == "" && res.Status == flow.Done {
		return nil // it was already done and has not changed
	}
	rec := &replay.Status{
		Status: res.Status, Node: string(r.last), Failures: res.Failures, FailedBranches: res.FailedBranches,
		Usage: replay.NewUsage(res.Usage),
	}
	rec.Usage.Seconds = r.clock.total().Seconds()
	if len(res.Pending) > 0 {
		rec.Node = res.Pending[0].Path
	}
	if res.Err != nil {
		rec.Error = res.Err.Error()
	}
	if failed := (*flow.NodeError)(nil); errors.As(res.Err, &failed) {
		rec.Node = failed.Path
	}
	if err := r.append("", rec); err != nil {
		return err
	}
	if res.Status == flow.Done && res.FailedBranches == 0 {
		return nil
	}
	if err := r.o.Journal.Sync(); err != nil {
		return fmt.Errorf("write the checkpoint: %w", err)
	}
	r.emit(flow.EventCheckpoint, "", "", field("path", res.Checkpoint))
	return nil
}

func (r *run) emitEnd(res *flow.Result) {
	if res.Err != nil && r.o.Callbacks.FlowError != nil {
		r.o.Callbacks.FlowError(r.o.RunID, res.Err)
	}
	if r.o.Callbacks.FlowEnd != nil {
		r.o.Callbacks.FlowEnd(res)
	}
	if !r.listening() {
		return
	}
	fields := []flow.Field{
		field("status", string(res.Status)), field("duration_ms", milliseconds(res.Elapsed)), field("steps", int64(res.Usage.Steps)),
	}
	if res.Usage.Tokens > 0 {
		fields = append(fields, field("tokens", res.Usage.Tokens))
	}
	if res.Usage.USD > 0 {
		fields = append(fields, field("usd", res.Usage.USD))
	}
	if res.FailedBranches > 0 {
		fields = append(fields, field("failed_branches", int64(res.FailedBranches)))
	}
	if res.Err != nil {
		failure := *asFailure(res.Err)
		failure.Message = res.Err.Error()
		if errors.As(res.Err, new(*flow.BudgetError)) {
			failure.Type = tea.BudgetExceeded
		}
		fields = failed(&failure, fields...)
	}
	r.emit(flow.EventRunEnd, "", "", fields...)
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}

// callIDs returns the external key of a call, which is the same for every repetition of
// the call at this path of this run, and its W3C trace context: the trace is the run, the
// span an attempt of the node. Both are in the memory of ids, which must not be changed later.
func (r *run) callIDs(ids []byte, path, node execpath.Path, attempt int) (idempotencyKey, traceparent string) {
	var buf [128]byte // most fit
	text := append(append(append(buf[:0], r.o.RunID...), 0), path.WithoutAttempts()...)
	sum := sha256.Sum256(text)
	ids = hex.AppendEncode(ids, sum[:16])
	keyLen := len(ids)
	r.traceOnce.Do(func() { r.trace = tracecontext.TraceOf(r.o.RunID) })
	ids = r.trace.AppendParent(ids, tracecontext.SpanOf(string(node), attempt))
	both := unsafe.String(unsafe.SliceData(ids), len(ids))
	return both[:keyLen], both[keyLen:]
}

package engine

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/engine/replay"
	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/host/internal/state"
	"github.com/the-edge-agent/tea/internal/execpath"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/breaker"
)

// branch is one path of a fan-out or one item of a map.
type branch struct {
	name string
	path execpath.Path
	// item and count are the variables of a map's branch and the number of items.
	item  itemVars
	count int
	// entry is the first node of the branch, stop the fan-in node after its last
	// node. A map's branch consists of entry alone.
	entry, stop *graph.Node
	single      bool
}

// walk runs the branch in its frame.
func (b *branch) walk(ctx context.Context, inner *frame) error {
	if !b.single {
		inner.stop = b.stop
		return inner.walkFrom(ctx, b.entry, b.stop)
	}
	inner.only = inner.prefix
	_, err := inner.visit(ctx, b.entry)
	return err
}

type branchResult struct {
	flow.BranchOutcome
	path execpath.Path
	// frame is the frame of the current attempt; nil otherwise. A map has many frames,
	// so only the fields below are kept.
	frame *frame
	// state, deltas, failures and void are copied from the frame when it ends.
	state    map[string]any
	deltas   []delta
	failures []any
	void     uint64
	// result is the result of an item's node, nodes are the nodes of a fan-out's branch.
	result any
	nodes  *visits
	// repeats counts the retries of the branch, retries the retries of its nodes.
	repeats int
	retries atomic.Int64
	// start is set for a branch that was in progress when the run stopped.
	start *branchStart
	// cause is the error behind Err, with the node that failed.
	cause error
	// err is set if the branch ended for another reason than a failure of its
	// own: a suspension, the end of the run's context, a journal error.
	err error
}

// fan configures how the branches of one fan-out or map run.
type fan struct {
	policy graph.Parallel
	// base is the state that each branch starts from.
	base *state.State
	// begun is the record with which the branches began; replay.End if they have
	// not begun.
	begun uint64
	// joins reports whether a fan-in node gets the branches' states, so that
	// their changes need not be kept.
	joins bool
	// tolerant reports whether the frame continues after a failed branch instead
	// of failing.
	tolerant bool
}

// runBranches runs branches concurrently and returns their results in the order
// in which they are written.
func (f *frame) runBranches(ctx context.Context, list []branch, fan fan) ([]branchResult, error) {
	o := &fanOut{frame: f, list: list, fan: fan, results: make([]branchResult, len(list)), cancel: func(error) {}, limit: len(list)}
	if fan.policy.FailFast {
		ctx, o.cancel = f.run.withCancel(ctx)
		defer o.cancel(nil)
	}
	// Forking a fork writes nothing, so the workers can do it concurrently.
	fan.base.ForkTo(&o.base)
	o.fan.base = &o.base
	for i := range list {
		o.results[i].Branch, o.results[i].path = list[i].name, list[i].path
	}
	if len(list) > 0 && !list[0].single {
		frames := make([]frame, len(list)) // one allocation
		for i := range list {
			o.results[i].frame = &frames[i]
		}
	}
	if limit := fan.policy.MaxConcurrency; limit > 0 {
		o.limit = min(o.limit, limit)
	}
	o.run(ctx)
	f.run.failures.arrange(list)
	results := o.results
	for i := range results {
		f.void = max(f.void, f.run.replay.Redone(list[i].path), results[i].void)
	}
	return results, joinErrors(results, fan.tolerant)
}

// fanOut runs branches with workers. Each worker repeatedly takes the next branch
// that has not begun.
type fanOut struct {
	frame   *frame
	list    []branch
	fan     fan
	base    state.State
	results []branchResult
	// cancel ends the other branches with fail_fast.
	cancel func(error)
	// limit is the maximum number of workers.
	limit int
	// worker runs as a goroutine; nil with a [Runtime], which starts the workers.
	worker func()

	mu sync.Mutex
	// begun counts the branches that have begun, in the order in which they are written.
	begun, workers int
	wg             sync.WaitGroup
}

// run returns when all branches have ended.
func (o *fanOut) run(ctx context.Context) {
	if rt := o.frame.run.o.Runtime; rt != nil {
		rt.Concurrently(ctx, o.limit, o.work)
		return
	}
	o.worker = func() {
		defer o.wg.Done()
		o.work(ctx)
	}
	o.wg.Add(1)
	o.workers = 1
	o.worker()
	o.wg.Wait()
}

func (o *fanOut) work(ctx context.Context) {
	r := o.frame.run
	// The starts of branches are seen in the order in which they are written.
	ordered := r.listening() || r.o.Callbacks.BranchStart != nil || o.fan.policy.Breaker != nil
	for first := true; ; first = false {
		o.mu.Lock()
		i := o.begun
		if i == len(o.list) {
			o.mu.Unlock()
			return
		}
		o.begun++
		var rec *replay.Branch
		if ordered {
			rec = o.frame.beginBranch(ctx, &o.list[i], &o.fan, &o.results[i])
		}
		// Each worker starts the next one only when it has work: short branches end
		// before there are many workers.
		more := first && o.worker != nil && o.workers < o.limit
		if more {
			o.workers++
		}
		o.mu.Unlock()
		if more {
			o.wg.Add(1)
			go o.worker()
		}
		if !ordered {
			rec = o.frame.beginBranch(ctx, &o.list[i], &o.fan, &o.results[i])
		}
		o.frame.runBranch(ctx, &o.list[i], &o.fan, &o.results[i], rec)
		if err := o.results[i].Err; err != nil {
			o.cancel(err)
		}
	}
}

// takeResumeInput removes the input of a resume, for keys with a reducer, from the
// branches' changes and returns it. Such input replaces the value from before the branches,
// not what other branches have added.
func (f *frame) takeResumeInput(results []branchResult) (given []delta) {
	for i := range results {
		deltas := results[i].deltas
		for n := range deltas {
			if !deltas[n].replace {
				continue
			}
			values := map[string]any{}
			for key, v := range deltas[n].values {
				if f.graph.Schema.Reducer(key) == spec.ReduceReplace {
					continue
				}
				values[key] = v
				for earlier := range deltas[:n+1] {
					deltas[earlier].values = without(deltas[earlier].values, key)
				}
			}
			if len(values) > 0 {
				given = append(given, delta{values: values, replace: true})
			}
		}
	}
	return given
}

// without returns the values without a key.
func without(values map[string]any, key string) map[string]any {
	if _, has := values[key]; !has {
		return values
	}
	rest := maps.Clone(values)
	delete(rest, key)
	return rest
}

// joinErrors returns the error for the enclosing frame: nil, the first failure in the
// order in which the branches are written, or errSuspended.
func joinErrors(results []branchResult, tolerant bool) error {
	var failure, suspended, unwound error
	for i := range results {
		res := &results[i]
		switch {
		case errors.Is(res.err, errSuspended):
			suspended = res.err
		case res.err != nil && errors.As(res.err, new(*journalError)):
			return res.err
		case res.err != nil:
			unwound = res.err
		case res.Err != nil && failure == nil && !tolerant:
			failure = res.failure()
		}
	}
	if failure != nil {
		return failure
	}
	if unwound != nil {
		return unwound
	}
	if suspended != nil {
		return suspended
	}
	return nil
}

func (res *branchResult) failure() error {
	var node *flow.NodeError
	if errors.As(res.cause, &node) {
		return node
	}
	return &flow.NodeError{Node: res.Branch, Path: string(res.path), Err: res.Err}
}

// open initializes the frame of an attempt, inside f.
func (res *branchResult) open(f *frame, b *branch, path execpath.Path, fan *fan) {
	if res.frame == nil {
		res.frame = &frame{}
	}
	inner := res.frame
	inner.open(f, f.graph, path, fan.base, fan.begun)
	inner.joins, inner.retries = fan.joins, &res.retries
	if b.single {
		inner.item = b.item
		inner.countAlone()
		inner.state.Set(b.item.name, b.item.value)
		inner.state.Set(b.item.indexName, b.item.index)
	}
}

// close copies what is needed from the frame and releases it.
func (res *branchResult) close(b *branch) {
	f := res.frame
	res.frame = nil
	res.state, res.deltas, res.failures, res.void = f.state.Values(), f.deltas, f.failures, f.void
	if b.single {
		res.result = f.ownResult(b.entry.Name)
	} else {
		res.nodes = &f.nodes
	}
}

// beginBranch returns the recorded outcome of a branch. If there is none, it
// decides whether the branch runs and emits its start.
func (f *frame) beginBranch(ctx context.Context, b *branch, fan *fan, res *branchResult) *replay.Branch {
	r := f.run
	if rec := r.replay.Branch(b.path, f.void); rec != nil {
		return rec
	}
	if ctx.Err() != nil {
		res.err = context.Cause(ctx)
		return nil
	}
	// A branch that had begun before a resume was allowed at that time.
	if br := r.breaker(b.name, fan.policy.Breaker); !f.begunBefore(b) && !br.Allow() {
		res.Err = tea.Errorf(tea.CircuitOpen, "the circuit breaker of branch %q is open", b.name)
		res.Circuit = string(br.State())
		return nil
	}
	f.startBranch(b, res)
	return nil
}

// begunBefore reports whether a part of a branch is recorded, or all of a
// single-node item.
func (f *frame) begunBefore(b *branch) bool {
	r := f.run
	return r.replay.Begun(b.path, f.void) || b.single && r.replay.Node(b.path, f.void) != nil
}

// runBranch runs a branch that has begun, with its retries, timeout and breaker.
// rec is its recorded outcome; nil if there is none.
func (f *frame) runBranch(ctx context.Context, b *branch, fan *fan, res *branchResult, rec *replay.Branch) {
	r := f.run
	res.open(f, b, b.path, fan)
	defer res.close(b)
	br := r.breaker(b.name, fan.policy.Breaker)
	if rec != nil {
		res.recall(ctx, b, rec)
		if res.Err != nil {
			r.failures.note(b.path, true, res.Err)
		}
		if res.Err != nil && res.Err.Type != tea.CircuitOpen {
			br.Record(false)
		}
		return
	}
	if res.err != nil {
		return
	}
	if res.Err != nil { // the circuit breaker is open
		f.endBranch(res, fan.tolerant)
		return
	}
	started := r.now()
	total, stop := r.allAttempts(ctx, fan.policy.Retry, "branch", b.name)
	defer stop()
	first := r.replay.Attempt(b.path)
	f.countRetries(first - 1)
	for attempt := first; ; attempt++ {
		res.repeats = attempt - 1
		if attempt > 1 {
			res.frame = nil
			res.open(f, b, b.path.Attempt(attempt), fan)
		}
		res.frame.start = res.start
		if f.tryBranch(ctx, total, b, &fan.policy, res) || res.Timeout && total.Err() != nil || !f.retryBranch(ctx, total, &fan.policy, attempt, res) {
			break
		}
	}
	res.Elapsed = r.now().Sub(started)
	if res.err != nil {
		return
	}
	br.Record(res.Err == nil)
	res.Circuit = string(br.State())
	f.endBranch(res, fan.tolerant)
}

// tryBranch makes one attempt within the context total; done reports whether there is
// nothing to retry.
func (f *frame) tryBranch(ctx, total context.Context, b *branch, policy *graph.Parallel, res *branchResult) (done bool) {
	res.Err, res.Timeout, res.err, res.cause = nil, false, nil, nil
	inner := total
	if policy.Timeout > 0 {
		var stop context.CancelFunc
		inner, stop = f.run.withTimeout(total, policy.Timeout, tea.Errorf(tea.Timeout, "branch %q took longer than timeout_seconds (%s)", b.name, policy.Timeout))
		defer stop()
	}
	err := b.walk(inner, res.frame)
	switch {
	case err == nil:
		return true
	case unwinds(ctx, err) || errors.As(err, new(*flow.BudgetError)):
		res.err = err
		return true
	case inner.Err() != nil:
		res.Timeout = true
		res.Err = f.run.failure(context.Cause(inner))
		if f.run.o.Callbacks.BranchTimeout != nil {
			f.run.o.Callbacks.BranchTimeout(string(b.path), policy.Timeout)
		}
		return false
	}
	res.Err, res.cause = f.run.failure(err), err
	return false
}

// retryBranch waits for the next attempt; it returns false if there is none.
func (f *frame) retryBranch(ctx, total context.Context, policy *graph.Parallel, attempt int, res *branchResult) bool {
	if attempt > policy.Retry.MaxRetries || !retries(policy.Retry, res.Err) {
		return false
	}
	wait, err := f.run.retryWait(policy.Retry, attempt, res.Err)
	if err != nil {
		res.Err, res.cause = tea.AsError(err), nil
		return false
	}
	f.run.emit(flow.EventRetry, "", res.path, retryFields(attempt, wait, res.Err, field("branch", res.Branch))...)
	f.countRetries(1)
	if f.run.o.Callbacks.BranchRetry != nil {
		f.run.o.Callbacks.BranchRetry(string(res.path), attempt, wait, res.Err)
	}
	if err := f.run.sleep(total, wait); err != nil {
		if ctx.Err() != nil {
			res.err = err
		} else {
			res.Err, res.Timeout, res.cause = tea.AsError(expired(ctx, total, err, res.Err)), true, nil
		}
		return false
	}
	f.run.forget(res.path)
	if err := f.run.append(res.path, &replay.Attempt{N: attempt + 1}); err != nil {
		res.err = err
		return false
	}
	return true
}

// endBranch records a failure after which the run continues, and emits the end.
func (f *frame) endBranch(res *branchResult, tolerant bool) {
	r := f.run
	res.Success = res.Err == nil
	res.Retries = res.repeats + int(res.retries.Load())
	if !res.Success {
		r.forget(res.path)
		r.failures.note(res.path, true, res.Err)
	}
	if !res.Success && tolerant {
		if err := r.append(res.path, res.record()); err != nil {
			res.err = err
			return
		}
	}
	if res.start != nil && !res.start.emitted {
		return // it had ended before the resume
	}
	if r.listening() {
		fields := []flow.Field{field("branch", res.Branch), field("success", res.Success), field("duration_ms", milliseconds(res.Elapsed))}
		if res.Err != nil {
			fields = append(fields, field("error", res.Err.Message), field("error_type", string(res.Err.Type)), field("timeout", res.Timeout))
		}
		r.emit(flow.EventBranchEnd, "", res.path, fields...)
	}
	if !res.Success && r.o.Callbacks.BranchError != nil {
		r.o.Callbacks.BranchError(string(res.path), res.BranchOutcome)
	}
	if r.o.Callbacks.BranchEnd != nil {
		r.o.Callbacks.BranchEnd(string(res.path), res.BranchOutcome)
	}
}

// record returns the record of a failed branch.
func (res *branchResult) record() *replay.Branch {
	return &replay.Branch{
		Failure: replay.NewFailure(res.Err), Timeout: res.Timeout, Milliseconds: milliseconds(res.Elapsed),
		Retries: res.repeats, NodeRetries: int(res.retries.Load()), Circuit: res.Circuit,
	}
}

// recall restores a failed branch's outcome from the journal, and its state from
// the nodes that finished.
func (res *branchResult) recall(ctx context.Context, b *branch, rec *replay.Branch) {
	res.Err, res.Timeout, res.repeats, res.Circuit = rec.Failure.Err(), rec.Timeout, rec.Retries, rec.Circuit
	res.Elapsed = time.Duration(rec.Milliseconds * float64(time.Millisecond))
	res.frame.prefix = res.path.Attempt(res.repeats + 1)
	res.frame.replayOnly = true
	if err := b.walk(ctx, res.frame); err != nil && !errors.Is(err, errReplayed) && ctx.Err() != nil {
		res.err = err
	}
	// The records do not include the retries of the node that failed.
	res.frame.countRetries(rec.NodeRetries - int(res.retries.Load()))
	res.frame.enclosing.countRetries(res.repeats)
	res.Retries = res.repeats + int(res.retries.Load())
}

// branchStart emits the start of a branch once, when its first node runs. A
// resume does not repeat it for branches that had already ended.
type branchStart struct {
	once    sync.Once
	emitted bool
	run     *run
	branch  *branch
}

func (s *branchStart) notify() {
	s.once.Do(func() {
		s.emitted = true
		s.run.emitBranchStart(s.branch)
	})
}

// startBranch emits the start of a branch: immediately or, if a part of it is
// recorded, when it continues.
func (f *frame) startBranch(b *branch, res *branchResult) {
	if !f.begunBefore(b) {
		f.run.emitBranchStart(b)
		return
	}
	res.start = &branchStart{run: f.run, branch: b}
}

func (r *run) emitBranchStart(b *branch) {
	if r.listening() {
		fields := append(make([]flow.Field, 0, 4), field("branch", b.name))
		if b.single {
			fields = append(fields, field("index", b.item.index), field("count", int64(b.count)))
			if label := itemLabel(b.item.value); label != nil {
				fields = append(fields, field("item", label))
			}
		}
		r.emit(flow.EventBranchStart, "", b.path, fields...)
	}
	if r.o.Callbacks.BranchStart != nil {
		r.o.Callbacks.BranchStart(string(b.path), b.name)
	}
}

// wake emits the start of the enclosing branches that continue here, outermost
// first.
func (f *frame) wake() {
	if f == nil || !f.run.replay.Resumed() {
		return
	}
	f.enclosing.wake()
	if f.start != nil {
		f.start.notify()
	}
}

// breakers are a run's circuit breakers, one for each branch name.
type breakers struct {
	mu  sync.Mutex
	all map[string]*breaker.Breaker
}

// breaker returns the circuit breaker of a branch; nil, which allows every call,
// if none is configured.
func (r *run) breaker(branch string, config *spec.Breaker) *breaker.Breaker {
	if config == nil {
		return nil
	}
	b := &r.breakers
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[string]*breaker.Breaker{}
	}
	if b.all[branch] == nil {
		b.all[branch] = breaker.New(breaker.Settings{
			Failures: config.FailureThreshold,
			Pause:    config.ResetTimeout,
			Trials:   config.HalfOpenMaxCalls,
			Now:      r.now,
			OnChange: func(from, to breaker.State) {
				if r.o.Callbacks.BreakerChange != nil {
					r.o.Callbacks.BreakerChange(branch, string(from), string(to))
				}
			},
		})
	}
	return b.all[branch]
}

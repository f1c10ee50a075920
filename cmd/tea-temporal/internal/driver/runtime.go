package driver

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/the-edge-agent/tea/host"
)

// workflowKey is the context key for the context of the coroutine.
type workflowKey struct{}

// coroutine returns the Temporal context in ctx. It is canceled whenever ctx is.
func coroutine(ctx context.Context) workflow.Context {
	return ctx.Value(workflowKey{}).(workflow.Context)
}

func withCoroutine(ctx context.Context, w workflow.Context) context.Context {
	return context.WithValue(ctx, workflowKey{}, w)
}

// runtime implements [host.Runtime] with the coroutines and timers of a Temporal
// workflow.
type runtime struct {
	root   workflow.Context
	random *rand.Rand
	// mask seals the results of Once.
	mask host.Mask
	task task
}

// newRuntime returns a runtime that draws the same random numbers at each replay.
func newRuntime(w workflow.Context) *runtime {
	seed := fnv.New64a()
	seed.Write([]byte(workflow.GetInfo(w).WorkflowExecution.RunID))
	return &runtime{root: w, task: task{root: w}, random: rand.New(rand.NewPCG(seed.Sum64(), 0))} //nolint:gosec // not a secret
}

func (r *runtime) Now() time.Time { return workflow.Now(r.root) }

func (r *runtime) Random() float64 { return r.random.Float64() }

func (r *runtime) WithCancel(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	inner, cancel := context.WithCancelCause(ctx)
	w, cancelCoroutine := workflow.WithCancel(coroutine(ctx))
	return withCoroutine(inner, w), func(cause error) {
		cancel(cause)
		cancelCoroutine()
	}
}

func (r *runtime) WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	inner, cancel := r.WithCancel(ctx)
	r.timer(coroutine(inner), d, func() { cancel(cause) })
	return inner, func() { cancel(context.Canceled) }
}

func (r *runtime) AfterFunc(ctx context.Context, d time.Duration, fn func()) (stop func()) {
	w, cancel := workflow.WithCancel(coroutine(ctx))
	r.timer(w, d, fn)
	return cancel
}

// timer calls fn after d unless w is canceled.
func (r *runtime) timer(w workflow.Context, d time.Duration, fn func()) {
	workflow.Go(w, func(w workflow.Context) {
		if workflow.NewTimer(w, d).Get(w, nil) == nil {
			fn()
		}
	})
}

func (r *runtime) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 && ctx.Err() == nil {
		return nil
	}
	if err := workflow.Sleep(coroutine(ctx), d); err != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (r *runtime) Concurrently(ctx context.Context, n int, work func(ctx context.Context)) {
	w := coroutine(ctx)
	wg := workflow.NewWaitGroup(w)
	for i := range n - 1 {
		wg.Add(1)
		workflow.GoNamed(w, "branch "+strconv.Itoa(i+2), func(w workflow.Context) {
			defer wg.Done()
			work(withCoroutine(ctx, w))
		})
	}
	work(ctx)
	wg.Wait(w)
}

// maxOnce bounds the function of Once. Lua code has a separate deadline.
const maxOnce = time.Hour

// Once runs fn as a local activity. Its outcome is a marker in the history.
func (r *runtime) Once(ctx context.Context, fn func(ctx context.Context) (any, error)) (any, error) {
	out, err := r.outcome(ctx, "lua", func(ctx context.Context) (answer, error) {
		v, err := fn(ctx)
		return newAnswer(v, err, r.mask)
	})
	return out.value(ctx, r.mask, err)
}

func (r *runtime) outcome(ctx context.Context, summary string, fn recorded) (out answer, err error) {
	done := r.task.local(ctx)
	w := workflow.WithLocalActivityOptions(coroutine(ctx), workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: maxOnce, Summary: summary, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	stored := r.task.stored
	err = workflow.ExecuteLocalActivity(w, recordOutcome, recorded(func(ctx context.Context) (answer, error) {
		out, err := fn(ctx)
		return limited(out, stored), err
	})).Get(w, &out)
	done(out.size())
	return out, err
}

// recorded is a function whose outcome is stored in the history.
type recorded func(ctx context.Context) (answer, error)

// recordOutcome is the local activity for a function. A replay does not execute it.
func recordOutcome(ctx context.Context, fn recorded) (answer, error) { return fn(ctx) }

// localCall is a call that runs as a local activity.
type localCall struct {
	worker *worker
	wf     *loaded
	call   call
}

// recordCall is the local activity for a call.
func recordCall(ctx context.Context, c *localCall) (answer, error) {
	return c.worker.local(ctx, c.wf, c.call)
}

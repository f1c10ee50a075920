package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
)

// stopped is the cancellation cause of a run that the server stops.
type stopped struct{ by string }

func (s *stopped) Error() string { return "stopped by " + s.by }

// Unwrap classifies the error as canceled.
func (s *stopped) Unwrap() error { return context.Canceled }

var (
	errClosed   = &stopped{"the end of the server"}
	errCanceled = &stopped{"a request"}
	errReplaced = &stopped{"a newer run (overlap: cancel_running)"}
)

const (
	// maxEqual is the number of equal failures in a row after which a run is parked.
	maxEqual = 3
	// startRetry is the wait before a run that could not be started or recorded is
	// retried.
	startRetry = time.Second
)

// parked is the reason why a run is not continued.
type parked struct{ reason string }

func (p *parked) Error() string { return p.reason }

// execute runs an item until it ends, waits or fails.
func (s *server) execute(ctx context.Context, lv *live) {
	res, err := s.attempt(ctx, lv)
	lv.cancel(nil)
	lv.hub.close()
	if continues := s.recordOutcome(lv, res, err); res != nil && !continues {
		s.brokers.publish(lv, res)
	}
	lv.v.uses.Done()
}

// attempt starts or continues the run.
func (s *server) attempt(ctx context.Context, lv *live) (*flow.Result, error) {
	it := lv.it
	if err := os.MkdirAll(s.dataDir(it.Workflow), 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	s.mu.Lock()
	begun := it.Resume != nil || it.Waiting // it has a checkpoint
	continues := begun || it.Attempts > 0 || it.recovered
	s.mu.Unlock()
	if continues {
		res, err := s.proceed(ctx, lv)
		if !errors.Is(err, fs.ErrNotExist) || begun {
			return res, err
		}
	}
	if err := lv.v.kept(); err != nil {
		return nil, err
	}
	if err := s.begin(it, 0); err != nil {
		return nil, err
	}
	input, err := s.unseal(it.Input)
	if err != nil {
		return nil, &parked{"its input cannot be read: " + err.Error()}
	}
	o := host.RunOptions{RunID: it.ID, Input: input, KeepOldRuns: true, StartedBy: startedBy(it), Events: s.events(lv), Middleware: s.metrics.models.invoke}
	if it.Fork != nil {
		return s.fork(ctx, it, o)
	}
	return s.svc.Execute(ctx, lv.v.Workflow, o, lv.v.Run)
}

// events returns a function that passes the events of a run on.
func (s *server) events(lv *live) func(flow.Event) {
	return func(e flow.Event) {
		s.metrics.event(lv.it.Workflow, e)
		lv.hub.put(e)
		if s.probe.Load() == lv.it {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.begun(lv.it)
		}
	}
}

// fork forks a run and continues the fork.
func (s *server) fork(ctx context.Context, it *item, o host.RunOptions) (*flow.Result, error) {
	info, err := host.FindRun(s.svc.Runs, it.Fork.Run)
	if err != nil {
		return nil, err
	}
	wf, err := s.svc.LoadRun(info, false)
	if err != nil {
		return nil, err
	}
	defer s.closeWorkflow(wf)
	return s.svc.Execute(ctx, wf, o, func(ctx context.Context, o host.RunOptions) (*flow.Result, error) {
		return wf.Fork(ctx, it.Fork.Run, it.Fork.At, o)
	})
}

// proceed continues a run from its checkpoint.
func (s *server) proceed(ctx context.Context, lv *live) (*flow.Result, error) {
	it := lv.it
	runs, err := s.openRuns()
	if err != nil {
		return nil, err
	}
	contents, err := runs.Show(it.ID + ".tea")
	if err != nil {
		return nil, err
	}
	if res, err := s.outcome(ctx, runs, contents, it); res != nil || err != nil {
		return res, err
	}
	wf := lv.v.Workflow
	if contents.Header.Digest != wf.Digest() && (it.Resume == nil || !it.Resume.Migrate) {
		info, err := host.FindRun(s.svc.Runs, it.ID)
		if err != nil {
			return nil, err
		}
		if wf, err = s.svc.LoadRun(info, false); err != nil {
			return nil, err
		}
		defer s.closeWorkflow(wf)
	}
	o, err := s.resumeOptions(it, contents)
	if err != nil {
		return nil, err
	}
	if err := s.begin(it, checkpoints.FinishedNodes(contents)); err != nil {
		return nil, err
	}
	o.Events, o.Middleware = s.events(lv), s.metrics.models.invoke
	return s.svc.Execute(ctx, wf, o, func(ctx context.Context, o host.RunOptions) (*flow.Result, error) {
		return wf.Resume(ctx, it.ID, o)
	})
}

// outcome returns the result of a run that ended before the server recorded it; nil
// if the run must continue.
func (s *server) outcome(ctx context.Context, runs *checkpoints.Dir, contents *checkpoints.Contents, it *item) (*flow.Result, error) {
	if it.Resume != nil && it.Attempts == 0 || !it.recovered {
		return nil, nil
	}
	entry, err := runs.Entry(it.ID)
	if err != nil {
		return nil, err
	}
	if entry.Status == flow.Failed && it.Attempts > 0 && !it.interrupted {
		return nil, nil // already recorded
	}
	res := &flow.Result{RunID: it.ID, Status: entry.Status, Checkpoint: entry.Path}
	if entry.Status != flow.Running && entry.Status != flow.Stopped && len(contents.Records) > 0 {
		if res.State, err = s.stateAt(ctx, contents); err != nil {
			s.svc.Log.Warn("the state of run "+it.ID+" is missing", "run", it.ID, "error", s.svc.Hide(err.Error()))
		}
	}
	switch entry.Status {
	case flow.Done:
		return res, nil
	case flow.Waiting:
		if it.Waiting {
			return nil, nil // the deadline has passed
		}
		res.Pending, err = checkpoints.Pending(contents)
		return res, err
	case flow.Failed:
		failed, err := checkpoints.FailureOf(contents)
		res.Err, res.Failures = errors.New(failed.Error), failed.Failures
		return res, err
	}
	return nil, nil
}

// resumeOptions returns the options for continuing a run, without answers that an
// earlier attempt has already given.
func (s *server) resumeOptions(it *item, contents *checkpoints.Contents) (host.RunOptions, error) {
	o := host.RunOptions{Hold: true, KeepOldRuns: true, RetryFailed: it.Failures > 0}
	if it.Resume == nil {
		return o, nil
	}
	var err error
	if o.Input, err = s.unseal(it.Resume.Input); err != nil {
		return o, err
	}
	answers, err := s.unseal(it.Resume.Answers)
	if err != nil {
		return o, err
	}
	pending, err := checkpoints.Pending(contents)
	if err != nil {
		return o, err
	}
	o.Answers = map[string]any{}
	for _, i := range pending {
		if answer, ok := answers[i.ID]; ok {
			o.Answers[i.ID] = answer
		}
	}
	o.RetryFailed, o.Migrate = o.RetryFailed || it.Resume.RetryFailed, it.Resume.Migrate
	return o, nil
}

// begin records an attempt, with the number of finished nodes. A run that was
// interrupted too often without progress is parked.
func (s *server) begin(it *item, finished int) error {
	s.mu.Lock()
	switch {
	case !it.interrupted:
	case finished > it.Records:
		it.Stuck = 1 // the first interruption at this step
	default:
		it.Stuck++
	}
	recovered := it.recovered
	it.recovered, it.interrupted, it.Waiting = false, false, false
	if it.Stuck >= maxEqual {
		s.mu.Unlock()
		return &parked{fmt.Sprintf("the server ended %d times in a row while the run was at the same step", it.Stuck)}
	}
	it.Attempts++
	it.Records, it.Running = finished, true
	b, err := s.led.add(recovered, &entry{Try: new(it.progress)})
	s.mu.Unlock()
	if err == nil && recovered {
		err = b.wait()
	}
	return err
}

// recordOutcome records the outcome of an attempt, and reports whether the run continues by
// itself.
func (s *server) recordOutcome(lv *live, res *flow.Result, err error) (continues bool) {
	it := lv.it
	s.mu.Lock()
	defer s.mu.Unlock()
	ln := s.line(it.Workflow)
	delete(ln.running, it.ID)
	delete(s.live, it.ID)
	s.running--
	if it.Running = false; res != nil {
		it.recovered, it.interrupted = false, false // the next attempt need not look for an outcome
	}
	s.endTrial(it)
	s.setWaiting(it, res != nil && res.Status == flow.Waiting)
	defer s.dispatch()
	noRoom := res == nil && full(err)
	var used flow.Usage
	if !noRoom {
		s.begun(it)
		used = s.account(lv, res)
	}
	var entries []*entry
	stopping := s.runs.Err() != nil && (res == nil || res.Status == flow.Stopped)
	switch reason := (*parked)(nil); {
	case stopping:
		it.Attempts, it.Stuck = 0, 0 // it continues at the next start
		entries = append(entries, &entry{Try: new(it.progress)})
	case noRoom:
		continues = true
		s.requeueAfterFullDisk(lv, err, &entries)
	case errors.As(err, &reason):
		s.park(lv, res, reason.reason, &entries)
	case res == nil:
		continues = s.startFailed(lv, err, &entries)
	case res.Status == flow.Failed:
		continues = s.failed(lv, res, &entries)
	case res.Status == flow.Waiting && !deadline(res).IsZero():
		s.await(it, res, &entries)
	default:
		s.end(lv, res, &entries)
	}
	if !stopping {
		entries = append(entries, s.addUsage(lv, res, used, continues)...)
	}
	s.report(lv, res, err, continues)
	if !continues {
		s.alert(lv, res, err)
	}
	if _, err := s.led.add(false, entries...); err != nil && !errors.Is(err, errLedgerClosed) {
		s.svc.Log.Error("the state of the server cannot be written", "error", err)
	}
	s.startFollowers()
	it.move()
	if !continues {
		it.finish(res, err)
	}
	return continues || stopping
}

// deadline returns the earliest deadline of the questions of a run.
func deadline(res *flow.Result) (first time.Time) {
	for _, i := range res.Pending {
		if !i.Deadline.IsZero() && (first.IsZero() || i.Deadline.Before(first)) {
			first = i.Deadline
		}
	}
	return first
}

// account returns the usage of an attempt. The caller holds the mutex.
func (s *server) account(lv *live, res *flow.Result) (used flow.Usage) {
	if res != nil {
		used = res.Usage.Sub(lv.it.Spent)
		lv.it.Spent = res.Usage
	}
	s.metrics.ended(lv.it.Workflow, res, used)
	return used
}

// addUsage adds an attempt to the usage of the day. The caller holds the mutex.
func (s *server) addUsage(lv *live, res *flow.Result, used flow.Usage, continues bool) []*entry {
	it := lv.it
	ended := !continues && (it.Parked != "" || res != nil && res.Status != flow.Waiting)
	if !ended && res == nil {
		return nil
	}
	now := time.Now()
	u := s.led.state.used[it.Workflow].on(day(now))
	u.Workflow = it.Workflow
	u.Tokens += max(0, used.Tokens)
	u.USD += max(0, used.USD)
	u.Seconds += time.Since(lv.since).Seconds()
	if ended {
		u.Runs++
		u.Last = &lastRun{ID: it.ID, Status: statusParked, EndedAt: now.UTC()}
		if it.Parked == "" {
			u.Last.Status = string(res.Status)
		}
		if it.Parked != "" || res.Status == flow.Failed {
			u.Failed++
		}
	}
	return []*entry{{Used: &u}}
}

// maxError is the length of an error in the list of runs.
const maxError = 300

// shortError returns the beginning of a run's error, with masked secrets.
func shortError(lv *live, res *flow.Result) string {
	if res.Err == nil {
		return ""
	}
	text := lv.v.mask.Text(res.Err.Error())
	return strings.ToValidUTF8(text[:min(len(text), maxError)], "")
}

// end removes the item of an ended run, and starts its follow-up runs.
func (s *server) end(lv *live, res *flow.Result, entries *[]*entry) {
	it := lv.it
	ended := &entry{End: it.ID}
	*entries = append(*entries, ended)
	if res.Checkpoint != "" {
		ended.Over = &overRun{it.ID, it.Trigger, it.At, it.Attempts, usageOf(res), typeOf(res.Err), shortError(lv, res), it.AnsweredBy, it.AnsweredAt}
	}
	if res.Checkpoint != "" {
		s.line(it.Workflow).addEnded(it.ID, res.Status, time.Now())
	}
	s.ends++
	s.follow(lv, res, entries)
	select {
	case s.endings <- struct{}{}:
	default:
	}
}

// usageOf returns the usage of a run; nil if there is none.
func usageOf(res *flow.Result) *flow.Usage {
	if res.Usage == (flow.Usage{}) {
		return nil
	}
	return &res.Usage
}

// park keeps the item of a run that is not continued, and starts the follow-up runs
// of its failure; res is nil if the attempt has no result.
func (s *server) park(lv *live, res *flow.Result, reason string, entries *[]*entry) {
	it := lv.it
	it.Parked = reason
	*entries = append(*entries, &entry{Try: new(it.progress)})
	if res == nil {
		res = &flow.Result{RunID: it.ID, Status: flow.Failed, Err: errors.New(reason)}
	}
	s.follow(lv, res, entries)
}

// startFailed handles a run that could not be started or recorded, and reports
// whether it is retried.
func (s *server) startFailed(lv *live, err error, entries *[]*entry) (again bool) {
	it := lv.it
	permanent := errors.As(err, new(*flow.InputError)) || errors.As(err, new(host.Diagnostics)) || errors.Is(err, host.ErrWorkflowChanged) ||
		errors.As(err, new(*host.WorkflowNotFoundError)) || errors.As(err, new(*host.ConfigSecretError))
	switch it.again(s.svc.Hide(err.Error())); {
	case it.Resume != nil:
		s.resumeFailed(it, entries)
	case permanent || it.Failures >= maxEqual:
		s.park(lv, nil, s.svc.Hide(err.Error()), entries)
	default:
		s.later(it, time.Duration(it.Failures)*startRetry, entries)
		return true
	}
	return false
}

// resumeFailed restores a run whose resumption failed: it waits for answers again, or
// has ended.
func (s *server) resumeFailed(it *item, entries *[]*entry) {
	_, contents, err := s.contents(it.ID)
	var res flow.Result
	if err == nil {
		res.Pending, err = checkpoints.Pending(contents)
	}
	if it.unresumed = flow.Failed; len(res.Pending) > 0 {
		it.unresumed = flow.Waiting
		s.setWaiting(it, true)
	}
	if err != nil || deadline(&res).IsZero() {
		*entries = append(*entries, &entry{End: it.ID})
		return
	}
	s.await(it, &res, entries)
}

// await keeps the item of a waiting run until the deadline of its questions.
func (s *server) await(it *item, res *flow.Result, entries *[]*entry) {
	it.Waiting, it.Resume, it.Attempts, it.Failures, it.NotBefore = true, nil, 0, 0, deadline(res)
	*entries = append(*entries, &entry{Item: it, Try: new(it.progress)})
	s.enqueue(it)
}

// again counts a failure.
func (it *item) again(failure string) {
	if failure != it.Failure {
		it.Failure, it.Failures = failure, 0
	}
	it.Failures++
}

// later retries an item after a wait.
func (s *server) later(it *item, wait time.Duration, entries *[]*entry) {
	it.NotBefore = time.Now().Add(wait)
	*entries = append(*entries, &entry{Try: new(it.progress)})
	s.enqueue(it)
}

// failed handles a failed run, and reports whether it is retried.
func (s *server) failed(lv *live, res *flow.Result, entries *[]*entry) (again bool) {
	it, c := lv.it, lv.v.serving.Config()
	it.again(lv.v.mask.Text(failureKey(res.Err)))
	policy, most := retryPolicy(c)
	switch {
	case lv.canceled, it.Attempts > most || most == 0 || !retried(c, res.Err):
		s.end(lv, res, entries)
	case it.Failures >= maxEqual:
		s.park(lv, res, fmt.Sprintf("it failed in the same way %d times in a row: %s", it.Failures, lv.v.mask.Text(res.Err.Error())), entries)
	default:
		s.later(it, policy.Wait(it.Attempts), entries)
		return true
	}
	return false
}

// retried reports whether the retry policy applies to a failure.
func retried(c *host.ServeConfig, err error) bool {
	if c.Retry == nil || len(c.Retry.RetryOn) == 0 {
		return true
	}
	failure := (*tea.Error)(nil)
	return errors.As(err, &failure) && slices.Contains(c.Retry.RetryOn, string(failure.Type))
}

// failureKey returns a text that equal failures share.
func failureKey(err error) string {
	if node := (*flow.NodeError)(nil); errors.As(err, &node) && node.Err != nil {
		return node.Path + ": " + string(node.Err.Type)
	}
	return fmt.Sprint(err)
}

// retryPolicy returns the waits between the attempts of a run, and the number of
// retries.
func retryPolicy(c *host.ServeConfig) (p backoff.Policy, most int) {
	p = backoff.Policy{Base: time.Second, Max: 5 * time.Minute, Multiplier: 2, Jitter: 0.2}
	r := c.Retry
	if r == nil {
		return p, 0
	}
	most = orDefault(r.MaxRetries, 2)
	if r.Base != nil {
		p.Base = *r.Base
	}
	if r.Max != nil {
		p.Max = *r.Max
	}
	if r.Multiplier != nil {
		p.Multiplier = *r.Multiplier
	}
	if r.Jitter != nil {
		p.Jitter = *r.Jitter
	}
	return p, most
}

// report logs the outcome of an attempt; again reports whether another one follows.
func (s *server) report(lv *live, res *flow.Result, err error, again bool) {
	it := lv.it
	name := "run " + it.ID + " of " + it.Workflow
	log := s.svc.Log.With("run", it.ID, "workflow", it.Workflow)
	var details []any
	level := slog.LevelError
	if again && res == nil && full(err) {
		level = slog.LevelDebug // already logged
	} else if again {
		level = slog.LevelWarn
		details = append(details, "next_attempt", it.NotBefore.UTC().Format(time.RFC3339))
	}
	switch {
	case errors.As(err, new(*parked)): // logged below
	case res == nil:
		log.Log(s.ctx, level, name+" could not start", append(details, "error", s.svc.Hide(fmt.Sprint(err)))...)
	case res.Status == flow.Failed || err != nil:
		log.Log(s.ctx, level, name+" failed", append(details, "error", lv.v.mask.Text(fmt.Sprint(errors.Join(res.Err, err))), "attempts", it.Attempts)...)
	default:
		log.Info(name+": "+string(res.Status), "trigger", it.Trigger)
	}
	if it.Parked != "" {
		log.Error(name+" is parked: "+it.Parked, "continue", "POST /v1/runs/"+it.ID+"/retry")
	}
}

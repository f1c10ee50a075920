package server

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/the-edge-agent/tea/cmd/internal/runview"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/value"
)

// The reasons why a run cannot be resumed.
var (
	errBusy         = errors.New("the run is running or queued")
	errEnded        = errors.New("the run is done")
	errAwaitsAnswer = errors.New("the run waits for an answer and has no failed part; answer it with POST /v1/runs/ID/resume")
	errAnswered     = errors.New("the run has changed since its questions were read; read them again")
	errDropped      = errors.New("the run was stopped before it began")
	errRepeated     = errors.New("the request has already been accepted")
)

// postResume resumes a run with answers or input.
func (s *server) postResume(w http.ResponseWriter, r *http.Request) error {
	wait, err := waitOf(r.URL.Query())
	if err != nil {
		return err
	}
	body, _, err := readObject(r, "answers", "input", "retry_failed", "migrate")
	if err != nil {
		return err
	}
	answers, err1 := objectIn(body, "answers")
	input, err2 := objectIn(body, "input")
	retry, err3 := boolIn(body, "retry_failed")
	migrate, err4 := boolIn(body, "migrate")
	if err := cmp.Or(err1, err2, err3, err4); err != nil {
		return err
	}
	_, contents, err := s.contents(r.PathValue("id"))
	if err != nil {
		return err
	}
	pending, err := checkpoints.Pending(contents)
	if err != nil {
		return err
	}
	if answers, err = runview.AnswersTo(pending, answers); err != nil {
		return &statusError{http.StatusUnprocessableEntity, err}
	}
	resume := &resumption{RetryFailed: retry, Migrate: migrate, By: s.access.ownerOf(r).Name}
	resume.questions = slices.Collect(maps.Keys(answers))
	if resume.Answers, err1 = s.seal(answers); err1 != nil {
		return err1
	}
	if resume.Input, err2 = s.seal(input); err2 != nil {
		return err2
	}
	a, err := s.resume(contents, resume)
	if err != nil {
		return err
	}
	return s.answer(w, r, a, wait)
}

// postRetry runs the failed parts of a run again.
func (s *server) postRetry(w http.ResponseWriter, r *http.Request) error {
	wait, err := waitOf(r.URL.Query())
	if err != nil {
		return err
	}
	a, err := s.retry(r.PathValue("id"))
	if err != nil {
		return err
	}
	return s.answer(w, r, a, wait)
}

// retry runs the failed parts of a run again.
func (s *server) retry(id string) (a accepted, err error) {
	_, contents, err := s.contents(id)
	if errors.Is(err, errNoRun) { // parked before it could start
		a, err = s.retryParked(id)
	} else if err == nil {
		a, err = s.resume(contents, &resumption{RetryFailed: true})
	}
	if err != nil {
		err = s.asDropped(id, err)
	}
	return a, err
}

// retryParked retries a parked run that has no checkpoint.
func (s *server) retryParked(id string) (accepted, error) {
	s.mu.Lock()
	it := s.led.state.items[id]
	if it == nil || it.Parked == "" {
		s.mu.Unlock()
		return accepted{}, noRun(id)
	}
	next := &item{ID: it.ID, Workflow: it.Workflow, Trigger: it.Trigger, Input: it.Input, At: time.Now(), Depth: it.Depth, Fork: it.Fork}
	return s.requeue(next)
}

// resume makes the resumption of a run durable. Answers must have been checked against
// contents.
func (s *server) resume(contents *checkpoints.Contents, resume *resumption) (accepted, error) {
	id := contents.Header.RunID
	if !resume.Migrate {
		if err := s.hasVersion(contents); err != nil {
			return accepted{}, err
		}
	}
	s.mu.Lock()
	if k := resume.key; k != nil && s.led.state.key(k.Key) != nil {
		s.mu.Unlock()
		return accepted{}, errRepeated
	}
	next := &item{ID: id, Workflow: contents.Header.Workflow, At: time.Now(), Resume: resume}
	o := s.led.state.over[id]
	if it := s.led.state.items[id]; it != nil {
		if it.isBusy() {
			s.mu.Unlock()
			return accepted{}, errBusy
		}
		next.AnsweredBy, next.AnsweredAt = it.AnsweredBy, it.AnsweredAt
		next.Trigger, next.Input, next.Depth, next.Spent = it.Trigger, it.Input, it.Depth, it.Spent
	} else if o != nil {
		if next.AnsweredBy, next.AnsweredAt = o.AnsweredBy, o.AnsweredAt; o.Usage != nil {
			next.Spent = *o.Usage // the run's usage includes what was spent before
		}
	}
	resume.addTo(next)
	runs, err := s.openRuns()
	if err == nil {
		var entry checkpoints.Entry
		entry, err = runs.Entry(id)
		switch {
		case err != nil:
		case entry.Status == flow.Done && !(resume.RetryFailed && entry.FailedBranches > 0):
			err = errEnded
		case entry.Status == flow.Waiting && resume.RetryFailed && entry.FailedBranches == 0 && resume.Answers == nil && resume.Input == nil:
			err = errAwaitsAnswer
		case entry.Status == flow.Running:
			err = errBusy
		case (resume.Answers != nil || resume.key != nil) && entry.Records != len(contents.Records):
			err = errAnswered // a later question can have the same id
		}
	}
	if err != nil {
		s.mu.Unlock()
		return accepted{}, err
	}
	return s.requeue(next)
}

// hasVersion returns an error if the workflow version of a run no longer exists, so
// that the run cannot continue.
func (s *server) hasVersion(contents *checkpoints.Contents) error {
	if v := s.catalog.use(contents.Header.Workflow); v != nil {
		defer v.uses.Done()
		if v.Digest() == contents.Header.Digest {
			return nil
		}
	}
	info, err := host.FindRun(s.svc.Runs, contents.Header.RunID)
	if err != nil {
		return err
	}
	wf, err := s.svc.LoadRun(info, false)
	if err != nil {
		return &statusError{http.StatusConflict, err}
	}
	defer s.closeWorkflow(wf)
	if wf.Digest() != contents.Header.Digest {
		return fmt.Errorf("run %s: %w; pass \"migrate\": true to continue with the new version if everything that the run used still exists", info.RunID, host.ErrWorkflowChanged)
	}
	return nil
}

// requeue accepts an item in place of a parked or waiting one. The caller holds the
// mutex, which requeue unlocks.
func (s *server) requeue(next *item) (accepted, error) {
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		return accepted{}, errStopping
	}
	next.progress.ID = next.ID
	before := s.led.state.items[next.ID]
	a := accepted{id: next.ID, item: next, done: next.done()}
	changes := &entry{Item: next, Try: new(next.progress)}
	if next.Resume != nil {
		changes.Key = next.Resume.key
	}
	b, err := s.led.add(true, changes)
	s.mu.Unlock()
	if err == nil {
		err = b.wait()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if delete(s.led.state.items, next.ID); before != nil {
			s.led.state.items[next.ID] = before
			if before.Waiting { // its deadline may have passed meanwhile
				s.enqueue(before)
			}
		}
		if changes.Key != nil {
			delete(s.led.state.keys, changes.Key.Key)
		}
		next.refused = err
		next.finish(nil, err)
		return accepted{}, err
	}
	if s.led.state.items[next.ID] != next { // it was cancelled meanwhile
		return a, nil
	}
	s.line(next.Workflow).removeEnded(next.ID)
	s.count(next)
	s.enqueue(next)
	return a, nil
}

// asDropped returns errDropped if a run was not found because it was stopped before
// it began, otherwise err.
func (s *server) asDropped(id string, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, errNoRun) && s.led.state.drops[id] != nil {
		return errDropped
	}
	return err
}

// postFork forks a run at a step and continues the fork.
func (s *server) postFork(w http.ResponseWriter, r *http.Request) error {
	wait, err := waitOf(r.URL.Query())
	if err != nil {
		return err
	}
	body, _, err := readObject(r, "at", "input")
	if err != nil {
		return err
	}
	input, err := objectIn(body, "input")
	if err != nil {
		return err
	}
	var step string
	switch at := body["at"].(type) {
	case string:
		step = at
	case int64:
		step = fmt.Sprint(at)
	default:
		return badRequest(fmt.Errorf("at: expected the number of a record or the path of a node, got %s", value.TypeName(at)))
	}
	runs, contents, err := s.contents(r.PathValue("id"))
	if err != nil {
		return err
	}
	source := contents.Header.RunID
	at, err := runs.Step(source, step)
	if err != nil {
		return err
	}
	text, err := s.seal(input)
	if err != nil {
		return err
	}
	used, err := checkpoints.UsageAt(contents, at) // already counted for the source
	if err != nil {
		return err
	}
	s.mu.Lock()
	a, err := s.requeue(&item{
		ID: host.NewRunID(), Workflow: contents.Header.Workflow, At: time.Now(), Fork: &forking{source, at}, Input: text, progress: progress{Spent: used},
	})
	if err != nil {
		return err
	}
	return s.answer(w, r, a, wait)
}

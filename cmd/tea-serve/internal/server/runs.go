package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"time"

	"github.com/the-edge-agent/tea/cmd/internal/runview"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

const (
	// defaultPage and maxPage are numbers of runs per page.
	defaultPage, maxPage = 50, 500
	// statusQueued is the status of a run that waits in the queue.
	statusQueued = "queued"
	// statusParked is the status of a run that failed too often to be continued.
	statusParked = "parked"
)

// runDoc is a run as clients see it.
type runDoc struct {
	ID         string    `json:"id"`
	Workflow   string    `json:"workflow"`
	Status     string    `json:"status"`
	Trigger    string    `json:"trigger,omitempty"`
	Node       string    `json:"node,omitempty"`
	AcceptedAt time.Time `json:"accepted_at,omitzero"`
	StartedAt  time.Time `json:"started_at,omitzero"`
	UpdatedAt  time.Time `json:"updated_at,omitzero"`
	Parent     string    `json:"parent_run,omitempty"`
	// Question is the first question of a waiting run. Only lists have it.
	Question string `json:"question,omitempty"`
	// Unchanged reports that the run has not changed since the version known.
	Unchanged  bool                 `json:"unchanged,omitempty"`
	Attempts   int                  `json:"attempts,omitempty"`
	NextAt     time.Time            `json:"next_attempt_at,omitzero"`
	Reason     string               `json:"queued_because,omitempty"`
	Parked     string               `json:"parked,omitempty"`
	Error      string               `json:"error,omitempty"`
	ErrorType  tea.ErrorType        `json:"error_type,omitempty"`
	Failures   []flow.Failure       `json:"failures,omitempty"`
	Branches   int                  `json:"failed_branches,omitempty"`
	Pending    []any                `json:"pending,omitempty"`
	AnsweredBy map[string]string    `json:"answered_by,omitempty"`
	AnsweredAt map[string]time.Time `json:"answered_at,omitempty"`
	Usage      *flow.Usage          `json:"usage,omitempty"`
	State      json.RawMessage      `json:"state,omitempty"`
	Notes      []string             `json:"notes,omitempty"`

	input string // the beginning, for searches
}

// statuses are the values of Status.
var statuses = []string{string(flow.Running), string(flow.Waiting), string(flow.Failed), string(flow.Stopped), string(flow.Done), statusQueued, statusParked}

// errNoRun reports a run that does not exist, or does not belong to the directory.
var errNoRun = errors.New("there is no such run")

func noRun(id string) error { return fmt.Errorf("%w: %.100q", errNoRun, id) }

func docOf(e checkpoints.Entry) runDoc {
	trigger, _ := triggerOf(e)
	return runDoc{
		Trigger: trigger,
		ID:      e.ID, Workflow: e.Workflow, Status: string(e.Status), Node: e.Node, Parent: e.ParentRun, StartedAt: e.StartedAt.UTC(), UpdatedAt: e.UpdatedAt.UTC(),
		Error: e.Problem, input: e.Input,
	}
}

// doc returns the run as clients see it.
func (d *dropped) doc() runDoc {
	return runDoc{ID: d.ID, Workflow: d.Workflow, Status: string(flow.Stopped), Trigger: d.Trigger, AcceptedAt: d.At.UTC(), Error: errDropped.Error()}
}

// complete adds the server's data about a run. The caller holds the mutex.
func (s *server) complete(doc *runDoc) {
	it := s.led.state.items[doc.ID]
	if it == nil {
		if o := s.led.state.over[doc.ID]; o != nil {
			doc.Trigger, doc.AcceptedAt, doc.Attempts, doc.Usage, doc.ErrorType, doc.AnsweredBy, doc.AnsweredAt = o.Trigger, o.At.UTC(), o.Attempts, o.Usage, o.ErrorType, o.AnsweredBy, o.AnsweredAt
			doc.Error = cmp.Or(doc.Error, o.Error)
		}
		return
	}
	doc.Trigger, doc.AcceptedAt, doc.Attempts, doc.Parked, doc.AnsweredBy, doc.AnsweredAt = it.Trigger, it.At.UTC(), it.Attempts, it.Parked, it.AnsweredBy, it.AnsweredAt
	switch {
	case s.live[doc.ID] != nil:
		doc.Status = string(flow.Running)
	case it.Parked != "":
		doc.Status = statusParked
		doc.Error = cmp.Or(doc.Error, it.Parked)
	case it.Waiting:
		doc.Status = string(flow.Waiting)
	default:
		doc.Status, doc.NextAt, doc.Reason = statusQueued, it.NotBefore, s.reason(it)
	}
}

// reason returns why a run is queued. The caller holds the mutex.
func (s *server) reason(it *item) string {
	if s.diskFull.err != nil {
		return "the disk is full"
	}
	if it.NotBefore.After(time.Now()) || slices.Contains(s.suspects, it) {
		return "it failed or was interrupted, and is tried again later"
	}
	v := s.catalog.use(it.Workflow)
	if v == nil {
		return "the workflow is not served at the moment"
	}
	defer v.uses.Done()
	switch ln := s.line(it.Workflow); {
	case s.budgetSpent(v):
		return errBudgetSpent.Error()
	case len(ln.running) >= maxRunning(v.serving.Config()):
		return "the workflow has max_running runs"
	case ln.next(v.serving.Config()) < 0:
		return "the workflow has max_running runs, those that wait for an answer included"
	case s.running >= s.maxRunning:
		return "the server has --max-running runs"
	}
	return ""
}

// statusOf returns the status of an accepted run.
func (s *server) statusOf(id string) string {
	doc := runDoc{ID: id}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.complete(&doc); doc.Status != "" {
		return doc.Status
	}
	runs, err := s.openRuns()
	if err != nil {
		return string(flow.Done)
	}
	entry, err := runs.Entry(id)
	if err != nil {
		if s.led.state.drops[id] != nil {
			return string(flow.Stopped)
		}
		return string(flow.Done) // and removed
	}
	return string(entry.Status)
}

// openRuns opens the directory of runs. The error is [unwritable] if it was moved.
func (s *server) openRuns() (*checkpoints.Dir, error) {
	if err := s.led.moved(); err != nil {
		return nil, &unwritable{err}
	}
	return checkpoints.Open(s.svc.Runs)
}

// contents reads a run by its complete id. A prefix would reveal which ids other
// workflows have.
func (s *server) contents(id string) (*checkpoints.Dir, *checkpoints.Contents, error) {
	if !runview.ValidID(id) {
		return nil, nil, noRun(id)
	}
	runs, err := s.openRuns()
	if err != nil {
		return nil, nil, err
	}
	contents, err := runs.Show(id + ".tea")
	if errors.Is(err, fs.ErrNotExist) || err == nil && !s.catalog.Owns(contents.Header.WorkflowFile) {
		return nil, nil, noRun(id)
	}
	return runs, contents, err
}

// entry returns the summary of a run without reading the rest of its checkpoint.
func (s *server) entry(id string) (*checkpoints.Dir, checkpoints.Entry, error) {
	if !runview.ValidID(id) {
		return nil, checkpoints.Entry{}, noRun(id)
	}
	runs, err := s.openRuns()
	if err != nil {
		return nil, checkpoints.Entry{}, err
	}
	entry, err := runs.Entry(id + ".tea")
	if errors.Is(err, fs.ErrNotExist) || err == nil && !s.catalog.Owns(entry.WorkflowFile) {
		return nil, entry, noRun(id)
	}
	return runs, entry, err
}

// getRun describes a run.
func (s *server) getRun(w http.ResponseWriter, r *http.Request) error {
	doc, err := s.describeRun(r.Context(), r.PathValue("id"), r.URL.Query().Get("state") == "true")
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, doc)
}

func (s *server) describeRun(ctx context.Context, id string, state bool) (runDoc, error) {
	runs, contents, err := s.contents(id)
	s.mu.Lock()
	it, d := s.led.state.items[id], s.led.state.drops[id]
	if it == nil && s.led.state.over[id] != nil && errors.Is(err, errNoRun) {
		runs, contents, err = s.contents(id) // it may have begun and ended meanwhile
	}
	if err != nil {
		defer s.mu.Unlock()
		if it == nil && d != nil {
			return d.doc(), nil
		}
		if it == nil {
			return runDoc{}, err
		}
		doc := runDoc{ID: id, Workflow: it.Workflow}
		if s.complete(&doc); !errors.Is(err, errNoRun) {
			doc.Notes = []string{s.svc.Hide(err.Error())} // the checkpoint is damaged
		}
		return doc, nil
	}
	s.mu.Unlock()
	entry, err := runs.Entry(id)
	if err != nil {
		return runDoc{}, err
	}
	doc := docOf(entry)
	doc.Notes = slices.Clone(contents.Notes)
	s.mu.Lock()
	s.complete(&doc)
	s.mu.Unlock()
	failed, err := checkpoints.FailureOf(contents)
	if err != nil {
		return doc, err
	}
	doc.Error, doc.Failures, doc.Branches = cmp.Or(failed.Error, doc.Error), failed.Failures, failed.FailedBranches
	if own := slices.IndexFunc(failed.Failures, func(f flow.Failure) bool { return !f.Branch }); own >= 0 && doc.ErrorType == "" {
		doc.ErrorType = failed.Failures[own].Type
	}
	pending, err := checkpoints.Pending(contents)
	if err != nil {
		return doc, err
	}
	for _, i := range pending {
		doc.Pending = append(doc.Pending, runview.Describe(host.Mask{}, i)) // already masked
	}
	if state {
		if doc.State, err = s.stateOf(ctx, contents); err != nil {
			doc.Notes = append(doc.Notes, "the state is missing: "+s.svc.Hide(err.Error()))
		}
	}
	return doc, nil
}

// finished describes an ended or waiting run from memory: its checkpoint may be
// gone.
func (s *server) finished(ctx context.Context, a accepted) (runDoc, error) {
	if a.item == nil {
		return s.describeRun(ctx, a.id, true)
	}
	s.mu.Lock()
	res, failure, it := a.item.outcome, a.item.failure, a.item
	doc := runDoc{ID: a.id, Workflow: it.Workflow, Trigger: it.Trigger, AcceptedAt: it.At.UTC(), Attempts: it.Attempts, Parked: it.Parked, AnsweredBy: it.AnsweredBy, AnsweredAt: it.AnsweredAt}
	s.mu.Unlock()
	if res == nil && it.unresumed == flow.Waiting {
		doc, err := s.describeRun(ctx, a.id, true)
		doc.Error = s.svc.Hide(fmt.Sprint(failure))
		return doc, err
	}
	if res == nil {
		doc.Status, doc.Error = string(flow.Failed), s.svc.Hide(fmt.Sprint(failure))
		if doc.Parked != "" {
			doc.Status = statusParked
		}
		return doc, nil
	}
	doc.Status, doc.StartedAt, doc.Usage, doc.Branches = string(res.Status), res.Started.UTC(), &res.Usage, res.FailedBranches
	if doc.Parked != "" {
		doc.Status = statusParked
	}
	v := s.catalog.use(it.Workflow)
	if v == nil { // withdrawn since
		return s.describeRun(ctx, a.id, true)
	}
	defer v.uses.Done()
	doc.Failures = runview.MaskedFailures(v.mask, res.Failures)
	for _, i := range res.Pending {
		doc.Pending = append(doc.Pending, runview.Describe(v.mask, i))
	}
	if err := errors.Join(res.Err, failure); err != nil {
		doc.Error, doc.ErrorType = v.mask.Text(err.Error()), typeOf(err)
	}
	var err error
	doc.State, err = value.Encode(v.mask.Value(res.State))
	return doc, err
}

// typeOf returns the type of a run's error, or "".
func typeOf(err error) tea.ErrorType {
	if typed := (*tea.Error)(nil); errors.As(err, &typed) {
		return typed.Type
	}
	if errors.As(err, new(*flow.BudgetError)) {
		return tea.BudgetExceeded
	}
	return ""
}

// versionOf returns the workflow of a run for reading. The caller calls release.
func (s *server) versionOf(contents *checkpoints.Contents) (wf *host.Workflow, release func(), err error) {
	if v := s.catalog.use(contents.Header.Workflow); v != nil {
		if v.Digest() == contents.Header.Digest {
			return v.Workflow, v.uses.Done, nil
		}
		v.uses.Done()
	}
	info, err := host.FindRun(s.svc.Runs, contents.Header.RunID)
	if err != nil {
		return nil, nil, err
	}
	if wf, err = s.svc.LoadRun(info, true); err != nil {
		return nil, nil, err
	}
	return wf, func() { s.closeWorkflow(wf) }, nil
}

// stateOf computes the state of a run from its checkpoint, without secrets.
func (s *server) stateOf(ctx context.Context, contents *checkpoints.Contents) (json.RawMessage, error) {
	if len(contents.Records) == 0 {
		return nil, errors.New("the run has no records yet")
	}
	wf, release, err := s.versionOf(contents)
	if err != nil {
		return nil, err
	}
	defer release()
	mask, err := s.svc.Mask(wf)
	if err != nil {
		return nil, err
	}
	state, err := wf.StateAt(ctx, contents, contents.Records[len(contents.Records)-1].Seq)
	if err != nil {
		return nil, err
	}
	return value.Encode(mask.Value(state))
}

// stateAt computes the state of a run from a checkpoint with records.
func (s *server) stateAt(ctx context.Context, contents *checkpoints.Contents) (map[string]any, error) {
	wf, release, err := s.versionOf(contents)
	if err != nil {
		return nil, err
	}
	defer release()
	return wf.StateAt(ctx, contents, contents.Records[len(contents.Records)-1].Seq)
}

// getState answers with the state of a run.
func (s *server) getState(w http.ResponseWriter, r *http.Request) error {
	_, contents, err := s.contents(r.PathValue("id"))
	if err != nil {
		return err
	}
	state, err := s.stateOf(r.Context(), contents)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, state)
}

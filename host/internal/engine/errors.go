package engine

import (
	"errors"
	"sort"
	"sync"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/host/internal/script"
	"github.com/the-edge-agent/tea/host/internal/state"
	"github.com/the-edge-agent/tea/internal/execpath"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Types of failures of the graph itself, in addition to those of actions.
const (
	NoMatchingEdge      tea.ErrorType = "NoMatchingEdge"
	ConditionEvaluation tea.ErrorType = "ConditionEvaluation"
)

// errSuspended unwinds a frame in which an interrupt waits for an answer.
var errSuspended = errors.New("suspended at an interrupt")

// errReplayed ends a frame that only applies records.
var errReplayed = errors.New("the recorded part ends here")

// maxFailures is the maximum number of failures in a result.
const maxFailures = 20

// failures are the failures in a run so far.
type failures struct {
	mu       sync.Mutex
	first    []flow.Failure
	branches int
}

func (f *failures) note(path execpath.Path, branch bool, failure *tea.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if branch {
		f.branches++
	}
	if len(f.first) < maxFailures {
		f.first = append(f.first, flow.Failure{Path: string(path), Branch: branch, Type: failure.Type, Message: failure.Message})
	}
}

// arrange sorts the failures of branches, which were added as the branches ended, into
// the order in which the branches are written.
func (f *failures) arrange(list []branch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := map[string]int{} // in f.first
	for i, failure := range f.first {
		if failure.Branch {
			at[failure.Path] = i
		}
	}
	if len(at) < 2 {
		return
	}
	var places []int
	var ordered []flow.Failure
	for i := range list {
		if k, ok := at[string(list[i].path)]; ok {
			places, ordered = append(places, k), append(ordered, f.first[k])
		}
	}
	sort.Ints(places)
	for i, k := range places {
		f.first[k] = ordered[i]
	}
}

// asFailure converts any error of a body to an action error.
func asFailure(err error) *tea.Error {
	var (
		lua      *script.RunError
		template *expr.EvalError
		badType  *flow.TypeError
		reduce   *state.ReduceError
		action   *tea.Error
	)
	switch {
	case errors.As(err, &action):
		return action
	case errors.Is(err, expr.ErrTooLong):
		return tea.Errorf(tea.ResourceExhausted, "%w", err)
	case errors.As(err, &badType), errors.As(err, &reduce), errors.As(err, &template):
		return tea.Errorf(tea.ValidationError, "%w", err)
	case errors.As(err, &lua):
		return tea.Errorf(lua.Type(), "%w", err)
	}
	return tea.AsError(err)
}

// failure is asFailure without secrets, for workflows, checkpoints and events. A
// message may quote and truncate a secret, so a checkpoint cannot replace it by a
// reference.
func (r *run) failure(err error) *tea.Error {
	failure := asFailure(err)
	if r.o.Secrets == nil {
		return failure
	}
	masked := *failure
	masked.Message, masked.Source = r.o.Secrets.Text(failure.Message), r.o.Secrets.Text(failure.Source)
	if details, err := value.From(failure.Details); err == nil {
		masked.Details, _ = r.o.Secrets.Redact(details).(map[string]any)
	}
	return &masked
}

// errorsKey collects the failures of nodes with on_error: continue.
const errorsKey = "__errors__"

// failureResult is the result of a failed node after which the run continues.
func failureResult(failure *tea.Error) map[string]any {
	m := failureFields(failure)
	m["success"] = false
	return m
}

// noteFailure appends a failure to the state's list of errors.
func (f *frame) noteFailure(path execpath.Path, failure *tea.Error) {
	entry := failureFields(failure)
	entry["node"] = string(path)
	f.noteErrors([]any{entry})
}

func (f *frame) noteErrors(entries []any) {
	if len(entries) == 0 {
		return
	}
	old, _ := f.state.Get(errorsKey)
	list, _ := old.([]any)
	all := make([]any, 0, len(list)+len(entries))
	f.state.Set(errorsKey, append(append(all, list...), entries...))
	if f.outer != nil {
		f.failures = append(f.failures, entries...)
	}
}

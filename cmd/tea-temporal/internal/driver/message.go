package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// start is the first argument of a Temporal workflow.
type start struct {
	RunID string `json:"run_id"`
	// Key is the key of the definition, the second argument.
	Key string `json:"key"`
	// Input is sealed.
	Input           json.RawMessage `json:"input,omitempty"`
	InterruptBefore []string        `json:"interrupt_before,omitempty"`
	InterruptAfter  []string        `json:"interrupt_after,omitempty"`
	// Local executes actions as local activities.
	Local bool `json:"local,omitempty"`
	// Attributes reports whether the server has the search attributes of tea.
	Attributes bool      `json:"attributes,omitempty"`
	StartedAt  time.Time `json:"started_at,omitzero"`
	// Parent is the run of which this one is a fork.
	Parent string `json:"parent,omitempty"`

	// The following fields continue a run where its last execution has ended. The
	// records are in further arguments, one for each of Segments.
	Segments int   `json:"segments,omitempty"`
	LastSeq  int64 `json:"last_seq,omitempty"`
	// Previous is the execution that ended without being continued as new.
	Previous string `json:"previous,omitempty"`
	// Steps is the number of steps before a hand-over.
	Steps       int          `json:"steps,omitempty"`
	ResumeInput *resumeInput `json:"given,omitempty"`
	// Generation is the lowest generation of a worker for the execution.
	Generation int `json:"generation,omitempty"`
	// Opened are the nodes and branches that have begun but not ended.
	Opened []string `json:"opened,omitempty"`
	// HandOver is the number of actions after which the run continues in a new
	// execution; 0 continues it when Temporal suggests so.
	HandOver int `json:"hand_over,omitempty"`
}

// resumeInput is the input of a resumed run.
type resumeInput struct {
	// Input and Answers are sealed.
	Input       json.RawMessage `json:"input,omitempty"`
	Answers     json.RawMessage `json:"answers,omitempty"`
	RetryFailed bool            `json:"retry_failed,omitempty"`
}

// call is the argument of an activity.
type call struct {
	Key    string          `json:"key"`
	Action string          `json:"action"`
	Params json.RawMessage `json:"params"` // sealed
	Call   tea.Call        `json:"call"`
	// Routed reports whether the queue is only for workers that have the action.
	Routed bool `json:"routed,omitempty"`
}

// answer is the outcome of an action. A failed action does not fail the activity,
// because the engine retries the call, not Temporal.
type answer struct {
	Result  json.RawMessage `json:"result,omitempty"` // sealed
	Failure *failure        `json:"failure,omitempty"`
	// Notices are the log records and streamed text of the action, in order.
	Notices []notice `json:"notices,omitempty"`
	// Elsewhere reports whether the worker does not have the plugin of the action.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// failure is an error of an action.
type failure struct {
	Type       tea.ErrorType   `json:"type"`
	Message    string          `json:"message"`
	Retryable  bool            `json:"retryable,omitempty"`
	RetryAfter time.Duration   `json:"retry_after,omitempty"`
	Source     string          `json:"source,omitempty"`
	Details    json.RawMessage `json:"details,omitempty"`
	// Fault and Crashed report that a plugin is at fault, or has crashed.
	Fault   bool `json:"fault,omitempty"`
	Crashed bool `json:"crashed,omitempty"`
	// File and Line are the position in Lua code.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// size estimates the size of the answer as JSON.
func (a *answer) size() int {
	n := len(a.Result)
	if a.Failure != nil {
		n += a.Failure.size()
	}
	if len(a.Notices) > 0 {
		raw, _ := json.Marshal(a.Notices) // notices can be encoded
		n += len(raw)
	}
	return n
}

func (f *failure) size() int { return len(f.Message) + len(f.Details) }

func newAnswer(v any, err error, mask host.Mask) (answer, error) {
	if err != nil {
		return answer{Failure: newFailure(err, mask)}, nil
	}
	raw, err := sealed(v, mask)
	return answer{Result: raw}, err
}

// value returns the outcome of an action; err is the error of its activity.
func (a *answer) value(ctx context.Context, mask host.Mask, err error) (any, error) {
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, activityError(err)
	case a.Failure != nil:
		return nil, a.Failure.err(mask)
	}
	return unsealed(a.Result, mask)
}

// activityError converts the error of an activity without an answer.
func activityError(err error) error {
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) {
		return tea.Errorf(tea.Timeout, "%s", timeout.Error())
	}
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	return tea.Errorf(tea.InternalError, "%s", err.Error())
}

func newFailure(err error, mask host.Mask) *failure {
	e := tea.AsError(err)
	f := &failure{Type: e.Type, Message: mask.Text(e.Message), Retryable: e.Retryable, RetryAfter: e.RetryAfter, Source: mask.Text(e.Source)}
	if details, err := value.From(e.Details); err == nil && len(e.Details) > 0 {
		f.Details, _ = sealed(details, mask)
	}
	f.Fault = errors.As(err, new(interface{ PluginFault() }))
	f.Crashed = errors.As(err, new(interface{ Crashed() }))
	var code interface {
		CodePosition() (file string, line int)
	}
	if errors.As(err, &code) {
		f.File, f.Line = code.CodePosition()
	}
	return f
}

func (f *failure) err(mask host.Mask) error {
	cause := errors.New(f.Message)
	switch {
	case f.Crashed:
		cause = crashed{fault{cause}}
	case f.Fault:
		cause = fault{cause}
	case f.Line > 0:
		cause = placed{cause, f.File, f.Line}
	}
	e := tea.Errorf(f.Type, "%w", cause)
	e.Retryable, e.RetryAfter, e.Source = f.Retryable, f.RetryAfter, f.Source
	if details, err := unsealed(f.Details, mask); err == nil {
		e.Details, _ = details.(map[string]any)
	}
	return e
}

// fault and crashed mark errors for the engine.
type (
	fault   struct{ error }
	crashed struct{ fault }
)

// placed adds the position of Lua code to an error.
type placed struct {
	error
	file string
	line int
}

func (p placed) CodePosition() (file string, line int) { return p.file, p.line }

func (fault) PluginFault() {}
func (crashed) Crashed()   {}

// sealed returns v as JSON, with references in place of secrets.
func sealed(v any, mask host.Mask) (json.RawMessage, error) {
	return value.Encode(mask.Seal(v))
}

func unsealed(raw json.RawMessage, mask host.Mask) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	v, err := value.Decode(raw)
	if err != nil {
		return nil, err
	}
	return mask.Unseal(v)
}

func object(raw json.RawMessage, mask host.Mask) (map[string]any, error) {
	v, err := unsealed(raw, mask)
	m, _ := v.(map[string]any)
	return m, err
}

// outcome is the result of a run, with *** in place of secrets.
type outcome struct {
	Status         flow.Status      `json:"status"`
	State          json.RawMessage  `json:"state,omitempty"`
	Pending        []flow.Interrupt `json:"pending,omitempty"`
	Error          *ending          `json:"error,omitempty"`
	Failures       []flow.Failure   `json:"failures,omitempty"`
	FailedBranches int              `json:"failed_branches,omitempty"`
	Usage          flow.Usage       `json:"usage"`
	Started        time.Time        `json:"started"`
	Elapsed        time.Duration    `json:"elapsed"`
}

// ending is the reason why a run failed or stopped.
type ending struct {
	Message string            `json:"message"`
	Budget  *flow.BudgetError `json:"budget,omitempty"`
	Node    *nodeError        `json:"node,omitempty"`
	Failure *failure          `json:"failure,omitempty"`
}

type nodeError struct {
	Node     string   `json:"node"`
	Path     string   `json:"path"`
	Pos      diag.Pos `json:"pos"`
	Attempts int      `json:"attempts"`
	InCode   bool     `json:"in_code"`
}

func newOutcome(res *flow.Result, mask host.Mask) (*outcome, error) {
	state, err := value.Encode(mask.Value(res.State))
	if err != nil {
		return nil, fmt.Errorf("encode the state: %w", err)
	}
	o := &outcome{
		Status: res.Status, State: state, Pending: res.Pending, Failures: res.Failures, FailedBranches: res.FailedBranches,
		Usage: res.Usage, Started: res.Started, Elapsed: res.Elapsed,
	}
	for i := range o.Failures {
		o.Failures[i].Message = mask.Text(o.Failures[i].Message)
	}
	if res.Err == nil {
		return o, nil
	}
	o.Error = &ending{Message: mask.Text(res.Err.Error())}
	var node *flow.NodeError
	var failed *tea.Error
	switch {
	case errors.As(res.Err, &o.Error.Budget):
	case errors.As(res.Err, &node):
		o.Error.Node = &nodeError{node.Node, node.Path, node.Pos, node.Attempts, node.InCode}
		o.Error.Failure = newFailure(node.Err, mask)
	case errors.As(res.Err, &failed):
		o.Error.Failure = newFailure(failed, mask)
	}
	return o, nil
}

// fail makes the outcome a failure.
func (o *outcome) fail(err error) {
	o.Status, o.Error = flow.Failed, &ending{Message: err.Error(), Failure: newFailure(err, host.Mask{})}
}

// result returns the outcome as the result of a local run.
func (o *outcome) result(runID, place string) (*flow.Result, error) {
	state, err := value.Decode(o.State)
	if err != nil {
		return nil, fmt.Errorf("decode the state: %w", err)
	}
	res := &flow.Result{
		RunID: runID, Status: o.Status, Pending: o.Pending, Failures: o.Failures, FailedBranches: o.FailedBranches,
		Usage: o.Usage, Checkpoint: place, Started: o.Started, Elapsed: o.Elapsed,
	}
	res.State, _ = state.(map[string]any)
	if e := o.Error; e != nil {
		res.Err = e.err()
	}
	return res, nil
}

func (e *ending) err() error {
	switch {
	case e.Budget != nil:
		return e.Budget
	case e.Failure == nil:
		return errors.New(e.Message)
	}
	failed := tea.AsError(e.Failure.err(host.Mask{}))
	if n := e.Node; n != nil {
		return &flow.NodeError{Node: n.Node, Path: n.Path, Pos: n.Pos, Attempts: n.Attempts, InCode: n.InCode, Err: failed}
	}
	return failed
}

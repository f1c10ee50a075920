package flow

import (
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Status is the status of a run.
type Status string

// The statuses of a run.
const (
	// Running is the status of a run that a process is executing.
	Running Status = "running"
	// Waiting is the status of a run that has reached an interrupt.
	Waiting Status = "waiting"
	// Failed is the status of a run that a failure has ended.
	Failed Status = "failed"
	// Stopped is the status of a run that ended early: it was canceled or
	// killed, or has reached its budget.
	Stopped Status = "stopped"
	// Done is the status of a run that has reached its end.
	Done Status = "done"
)

// Result is the outcome of a run, or of the part of a run up to an interrupt.
// It belongs to the caller.
type Result struct {
	RunID  string
	Status Status
	// State is the final state, or the state where the run stopped.
	State map[string]any
	// Pending are the interrupts that wait for an answer, by id.
	Pending []Interrupt
	// Err is why the run failed or stopped; nil when it is done or waiting.
	Err error
	// Failures are the failed nodes after which the run continued, and the failed
	// branches, in order of time. At most 20 are kept.
	Failures []Failure
	// FailedBranches counts the branches and items of maps that failed.
	FailedBranches int
	// Usage is the run's total usage, including resumed parts.
	Usage Usage
	// Checkpoint is the file to resume from; "" if the run has none.
	Checkpoint string
	// Started and Elapsed refer to this execution.
	Started time.Time
	Elapsed time.Duration
}

// Failure is a node or branch that failed.
type Failure struct {
	// Path is the path of the node or branch.
	Path    string        `json:"path"`
	Branch  bool          `json:"branch,omitempty"`
	Type    tea.ErrorType `json:"error_type"`
	Message string        `json:"error"`
}

// String returns the failure on one line.
func (f Failure) String() string { return f.Path + ": " + string(f.Type) + ": " + f.Message }

// Usage is what counts against the budget.
type Usage struct {
	Steps     int     `json:"steps"`
	Tokens    int64   `json:"tokens"`
	USD       float64 `json:"usd"`
	ToolCalls int     `json:"tool_calls"`
}

// BranchOutcome is how a branch ended.
type BranchOutcome struct {
	Branch  string
	Success bool
	Err     *tea.Error
	Timeout bool
	Elapsed time.Duration
	// Retries counts the retries of the branch and of the nodes in it.
	Retries int
	// Circuit is the state of the circuit breaker, "" without one.
	Circuit string
}

// Callbacks are called during a run, on the goroutine of the event; each can be
// nil. Branches call them concurrently and wait for them to return. BranchStart
// is called for the branches of a fan-out one at a time, in the order in which
// they are written.
type Callbacks struct {
	FlowStart     func(runID string)
	FlowEnd       func(r *Result)
	FlowError     func(runID string, err error)
	BranchStart   func(path, branch string)
	BranchEnd     func(path string, outcome BranchOutcome)
	BranchError   func(path string, outcome BranchOutcome)
	BranchRetry   func(path string, attempt int, wait time.Duration, err error)
	BranchTimeout func(path string, timeout time.Duration)
	BreakerChange func(branch string, from, to string)
}

// Add returns the sum of two usages.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Steps + v.Steps, u.Tokens + v.Tokens, u.USD + v.USD, u.ToolCalls + v.ToolCalls}
}

// Sub returns u without v.
func (u Usage) Sub(v Usage) Usage {
	return Usage{u.Steps - v.Steps, u.Tokens - v.Tokens, u.USD - v.USD, u.ToolCalls - v.ToolCalls}
}

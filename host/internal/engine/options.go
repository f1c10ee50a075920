package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/secret"
	"github.com/the-edge-agent/tea/host/internal/spec"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Actions calls actions by the names that workflows use.
type Actions interface {
	Describe(name string) (tea.ActionInfo, bool)
	Invoke(ctx context.Context, req *tea.Request) (*tea.Response, error)
}

// InvokeFunc calls an action.
type InvokeFunc = func(ctx context.Context, req *tea.Request) (*tea.Response, error)

// Journal stores what a run did. Append returns when the records are as
// durable as the run's durability asks; Sync makes everything durable.
type Journal interface {
	Append(records ...checkpoint.Record) error
	Sync() error
	Path() string
}

// Options are everything one run needs. Graph, Actions and RunID must be set.
type Options struct {
	Graph   *graph.Graph
	Actions Actions
	RunID   string
	// Input is merged over the workflow's initial state; on resume it is
	// merged into the state where the run goes on.
	Input map[string]any
	// Journal stores the run; nil keeps nothing.
	Journal Journal
	// CheckpointDir is shown to templates as checkpoint.dir.
	CheckpointDir string
	// Origin is stored with the start of a new run: how its workflow was loaded.
	Origin map[string]any
	// Replay are the records of the run that is resumed; empty for a new run.
	Replay []checkpoint.Record
	// Answers answer pending interrupts by id, on resume.
	Answers map[string]any
	// Hold leaves every interrupt that waits to Answers and Ask; else a resume
	// without answers passes those before and after nodes.
	Hold bool
	// RetryFailed runs the branches that failed again, and what follows them;
	// see [ErrNothingFailed].
	RetryFailed bool
	// Relaxed lets recorded decisions that no longer fit the graph be made
	// anew instead of failing (resume --force).
	Relaxed bool
	// Ask answers interrupts at once; nil stops the run at them.
	Ask func(ctx context.Context, i Interrupt) (answer any, err error)
	// Secrets are masked in events and sealed in the journal.
	Secrets *secret.Set
	// Env is the template root env; to read only.
	Env map[string]any
	// StartedAt is when the run began; zero = now.
	StartedAt time.Time
	// LoadGraph compiles a workflow file below a directory, for workflow.run.
	// The error is a [*tea.Error].
	LoadGraph func(dir, path string) (*graph.Graph, error)
	// Around stands around every call of an action, with next to go on; nil =
	// nothing does.
	Around func(ctx context.Context, req *tea.Request, next InvokeFunc) (*tea.Response, error)
	// Events receives the run's events, in order, one at a time; nil = none.
	Events func(Event)
	// FirstSeq is the number of the last event of the run so far.
	FirstSeq  int64
	Callbacks Callbacks
	Logger    *slog.Logger
	// InterruptBefore and InterruptAfter add to those of the workflow.
	InterruptBefore, InterruptAfter []string
	// Now is the clock; nil = time.Now.
	Now func() time.Time
}

// Callbacks are called while a run goes on, from the goroutine where it
// happens; each may be nil. Branches call concurrently.
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

// Status is how a run stands.
type Status string

// The statuses of a run.
const (
	Running Status = "running"
	Waiting Status = "waiting"
	Failed  Status = "failed"
	Stopped Status = "stopped"
	Done    Status = "done"
)

// Result is what came of a run.
type Result struct {
	RunID  string
	Status Status
	// State is the final state, or the state where the run stopped.
	State map[string]any
	// Pending are the interrupts that wait for an answer.
	Pending []Interrupt
	// Err is why the run failed or stopped; nil when it is done or waiting.
	Err error
	// Failures are what failed before the run came to its end, the first first:
	// nodes that the run went on from, and branches. At most 20 are kept.
	Failures []Failure
	// FailedBranches counts the branches and items of maps that failed.
	FailedBranches int
	// Usage is what the run has used so far, resumed parts included.
	Usage Usage
	// Checkpoint is the file to resume from; "" where nothing is kept.
	Checkpoint string
	// Started and Elapsed time this execution.
	Started time.Time
	Elapsed time.Duration
}

// Failure is a node or branch that failed.
type Failure struct {
	// Path is that of the node or branch.
	Path    string        `json:"path"`
	Branch  bool          `json:"branch,omitempty"`
	Type    tea.ErrorType `json:"error_type"`
	Message string        `json:"error"`
}

// String is the failure on one line.
func (f Failure) String() string { return f.Path + ": " + string(f.Type) + ": " + f.Message }

// Usage counts against the budget.
type Usage struct {
	Steps     int     `json:"steps"`
	Tokens    int64   `json:"tokens"`
	USD       float64 `json:"usd"`
	ToolCalls int     `json:"tool_calls"`
}

func (o *Options) workflow() *spec.Workflow { return o.Graph.Workflow }

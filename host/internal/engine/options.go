package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/host/internal/engine/replay"
	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/secret"
	"github.com/the-edge-agent/tea/host/internal/spec"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Actions describes and calls actions by the names that workflows use. A call with
// DryRun has no effect.
type Actions interface {
	Describe(name string) (tea.ActionInfo, bool)
	Invoke(ctx context.Context, req *tea.Request) (*tea.Response, error)
}

// InvokeFunc calls an action.
type InvokeFunc = func(ctx context.Context, req *tea.Request) (*tea.Response, error)

// Journal stores the records of a run. Append returns when the records are as
// durable as the run's durability requires; Sync makes all of them durable.
type Journal interface {
	Append(records ...checkpoint.Record) error
	Sync() error
	Path() string
}

// Options configure one run. Graph, Actions and RunID must be set.
type Options struct {
	Graph   *graph.Graph
	Actions Actions
	RunID   string
	// Input is merged over the workflow's initial state; on resume it is
	// merged into the state where the run continues.
	Input map[string]any
	// Journal stores the run; nil stores nothing.
	Journal Journal
	// CheckpointDir is the template value checkpoint.dir.
	CheckpointDir string
	// Origin, stored with the start of a new run, is how its workflow was loaded.
	Origin replay.Origin
	// Replay are the records of a resumed run; empty for a new run.
	Replay []checkpoint.Record
	// Steps is the number of steps so far, if greater than in the records, which
	// do not count nodes that failed in branches.
	Steps int
	// Answers answer pending interrupts by id, on resume.
	Answers map[string]any
	// Hold leaves every pending interrupt to Answers and Ask; otherwise a resume
	// without answers passes the interrupts before and after nodes.
	Hold bool
	// RetryFailed runs failed branches and the nodes after them again; see
	// [ErrNothingFailed].
	RetryFailed bool
	// Relaxed allows recorded decisions that no longer fit the graph to be made
	// again instead of failing (resume --force).
	Relaxed bool
	// DryRun makes only calls that change nothing; see [flow.EventDryRun].
	DryRun bool
	// Ask answers interrupts immediately; nil stops the run at them.
	Ask func(ctx context.Context, i flow.Interrupt) (answer any, err error)
	// Secrets are masked in events and sealed in the journal.
	Secrets *secret.Set
	// Env is the template root env; it is read only.
	Env map[string]any
	// StartedAt is when the run began; zero = now.
	StartedAt time.Time
	// LoadGraph compiles a workflow file below a directory, for workflow.run.
	// The error is a [*tea.Error].
	LoadGraph func(dir, path string) (*graph.Graph, error)
	// Middleware wraps every call of an action; next makes the call. nil = none.
	Middleware func(ctx context.Context, req *tea.Request, next InvokeFunc) (*tea.Response, error)
	// Events receives the run's events, in order, one at a time; nil = none.
	Events func(flow.Event)
	// Values receives, directly after the event that ends a node, its [flow.EventValues],
	// in which values are cut to about ValueBytes each. nil = none.
	Values     func(flow.Event)
	ValueBytes int
	// FirstSeq is the number of the run's last event so far.
	FirstSeq  int64
	Callbacks flow.Callbacks
	Logger    *slog.Logger
	// InterruptBefore and InterruptAfter are in addition to the workflow's.
	InterruptBefore, InterruptAfter []string
	// Now is the clock; nil = the runtime's, or time.Now.
	Now func() time.Time
	// Runtime drives the run; nil = goroutines and the system clock.
	Runtime Runtime
}

func (o *Options) workflow() *spec.Workflow { return o.Graph.Workflow }

package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/host/internal/engine"
	"github.com/the-edge-agent/tea/host/internal/engine/replay"
	tea "github.com/the-edge-agent/tea/sdk"
)

// RunOptions configure one run. The zero value runs without input and without a
// checkpoint. The maps are in the value model; the run does not change them, and
// the caller must not change them before it ends.
type RunOptions struct {
	// Input is merged over the workflow's initial state; on resume, into the state
	// from which the run continues.
	Input map[string]any
	// CheckpointDir is the directory of the run's checkpoint; "" = no checkpoint.
	CheckpointDir string
	// Durability is when the checkpoint is written; "" is sync.
	Durability flow.Durability
	// RunID names the run; "" creates an id. Ignored on resume.
	RunID string
	// StartedBy names the origin of the run, for clients that list runs; "" stores
	// nothing. Ignored on resume.
	StartedBy string
	// Secrets are available to templates under secrets; nested objects are
	// allowed. Their values are masked in everything that tea prints or stores.
	Secrets map[string]any
	// Env is available to templates under env; nil has no variables.
	Env map[string]any
	// Answers answer pending interrupts by id, on resume. Without an answer, a
	// resume passes every interrupt before and after nodes, unless Hold leaves
	// them waiting.
	Answers map[string]any
	Hold    bool
	// Ask answers interrupts immediately; nil stops the run at them.
	Ask func(ctx context.Context, i flow.Interrupt) (answer any, err error)
	// Events receives the run's events, in order, one at a time.
	Events func(flow.Event)
	// Middleware wraps every call of an action, for example for traces; next makes
	// the call. It is called concurrently. nil = none.
	Middleware func(ctx context.Context, req *tea.Request, next func(context.Context, *tea.Request) (*tea.Response, error)) (*tea.Response, error)
	// Callbacks are called during the run.
	Callbacks flow.Callbacks
	// InterruptBefore and InterruptAfter name additional nodes to stop at.
	InterruptBefore, InterruptAfter []string
	// RetryFailed, on resume, runs the failed branches of a run and the nodes after
	// them again; branches that succeeded are kept.
	RetryFailed bool
	// Force resumes even if the workflow has changed; Migrate does so only if
	// everything that the checkpoint refers to still exists.
	Force, Migrate bool
	// DryRun makes only the calls of actions that only read, as their descriptions say,
	// unless the node has `effects: once`. For each other call there is an event of type
	// dry_run, and the result is {"dry_run": true}, or the action's result, if the action
	// can check a call without its effect. The run has no checkpoint; a resume with
	// DryRun does not change the checkpoint of its run.
	DryRun bool
	// KeepOldRuns disables the pruning of old runs.
	KeepOldRuns bool
}

// Run runs the workflow to its end, an interrupt, a failure or the end of ctx. The
// outcome of the run is in the result. The error reports that the run could not start
// or be recorded: invalid input ([*flow.InputError]), a missing secret that the
// workflow reads ([Diagnostics]), a checkpoint that cannot be written, or [ErrClosed].
// Run is safe for concurrent use.
func (wf *Workflow) Run(ctx context.Context, o RunOptions) (*flow.Result, error) {
	if wf.closed.Load() || wf.host.closed.Load() {
		return nil, ErrClosed
	}
	if err := wf.graph.MissingSecrets(o.Secrets).Err(); err != nil {
		return nil, err
	}
	if o.RunID == "" {
		o.RunID = checkpoint.NewRunID(time.Now())
	}
	eo, err := wf.engineOptions(o)
	if err != nil {
		return nil, err
	}
	if o.CheckpointDir == "" || o.Durability == flow.DurabilityOff || o.DryRun {
		return engine.Execute(ctx, eo)
	}
	keeper, err := wf.startKeeper(ctx, o, checkpoint.Header{
		RunID: o.RunID, Workflow: wf.spec.Name, WorkflowFile: absolute(wf.spec.File),
		Digest: wf.spec.Digest, Plugins: wf.versions(), StartedAt: time.Now(), StartedBy: o.StartedBy,
	})
	if err != nil {
		return nil, err
	}
	eo.Origin = wf.origin()
	return keeper.run(ctx, eo)
}

func (wf *Workflow) engineOptions(o RunOptions) (engine.Options, error) {
	var values map[string]any
	if len(o.Input) > 0 {
		input, err := tea.ValuePayload(o.Input).Value()
		if err != nil {
			return engine.Options{}, fmt.Errorf("input: %w", err)
		}
		values, _ = input.(map[string]any)
	}
	r, err := wf.resolve(o.Secrets)
	if err != nil {
		return engine.Options{}, err
	}
	return engine.Options{
		Graph: wf.graph, Actions: r.actions, RunID: o.RunID, Input: values,
		CheckpointDir: o.CheckpointDir, Answers: o.Answers, Hold: o.Hold, RetryFailed: o.RetryFailed, Relaxed: o.Force, Ask: o.Ask, DryRun: o.DryRun,
		Secrets: r.set, Env: o.Env, LoadGraph: wf.load,
		Events: o.Events, Middleware: o.Middleware, Callbacks: o.Callbacks, Logger: wf.log(),
		InterruptBefore: o.InterruptBefore, InterruptAfter: o.InterruptAfter,
	}, nil
}

func (wf *Workflow) log() *slog.Logger { return wf.host.log }

// versions returns the versions of the bundles that the workflow can use, for the
// checkpoint.
func (wf *Workflow) versions() map[string]string {
	versions := map[string]string{}
	for _, e := range wf.catalog.Entries() {
		if e.Kind == "plugin" || e.Kind == "linked" {
			versions[e.Bundle] = e.Version
		}
	}
	return versions
}

// origin describes how the workflow was loaded, for a resume.
func (wf *Workflow) origin() replay.Origin {
	o := replay.Origin{Config: wf.options.Config}
	for _, f := range wf.options.Overlays {
		o.Overlays = append(o.Overlays, absolute(f))
	}
	if wf.options.DataDir != nil {
		o.DataDir = absolute(wf.spec.DataDir)
	}
	return o
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// keeper runs the engine with a journal and an event log.
type keeper struct {
	store   *checkpoint.Store
	journal *checkpoint.Journal
	events  *eventKeeper
}

// newKeeper returns a keeper that owns the journal.
func (wf *Workflow) newKeeper(store *checkpoint.Store, journal *checkpoint.Journal, d flow.Durability) *keeper {
	return &keeper{store: store, journal: journal, events: &eventKeeper{
		store: store, runID: journal.RunID(), durable: d != flow.DurabilityExit, limit: wf.eventLimit(), values: wf.valueBytes(),
	}}
}

// startKeeper prunes old runs and begins a new one.
func (wf *Workflow) startKeeper(ctx context.Context, o RunOptions, h checkpoint.Header) (*keeper, error) {
	o.Durability = cmp.Or(o.Durability, flow.DurabilitySync)
	store, err := checkpoint.OpenStore(o.CheckpointDir)
	if err != nil {
		return nil, err
	}
	if !o.KeepOldRuns {
		if _, err := store.GC(checkpoint.DefaultPolicy(), time.Now()); err != nil {
			wf.log().WarnContext(ctx, "old runs cannot be removed", "dir", o.CheckpointDir, "error", err.Error())
		}
	}
	journal, err := store.Create(h, o.Durability)
	if err != nil {
		return nil, err
	}
	return wf.newKeeper(store, journal, o.Durability), nil
}

// run executes the workflow and closes the journal and the event log.
func (k *keeper) run(ctx context.Context, eo engine.Options) (*flow.Result, error) {
	eo.Journal = k.journal
	eo.StartedAt = k.journal.Header().StartedAt
	if n := len(eo.Replay); n > 0 {
		eo.FirstSeq = k.events.lastSeq(eo.Replay[n-1].Kind != checkpoint.KindStatus)
	}
	eo.Events = k.events.tee(eo.Events)
	if k.events.values > 0 {
		eo.Values, eo.ValueBytes = k.events.takeValues, k.events.values
	}
	res, err := engine.Execute(ctx, eo)
	closeJournal := k.journal.Close
	if res != nil && res.Status == flow.Done && !k.events.durable {
		if !k.journal.Promised() {
			res.Checkpoint = ""
			return res, errors.Join(err, k.journal.Discard(), k.events.discard())
		}
		closeJournal = k.journal.Discard
	}
	if closeErr := k.events.close(); closeErr != nil {
		eo.Logger.Warn("the run's events are incomplete", "error", closeErr)
	}
	if closeErr := closeJournal(); closeErr != nil && err == nil {
		err = fmt.Errorf("close the checkpoint: %w", closeErr)
	}
	return res, err
}

// NewRunID returns an id for [RunOptions], for a program that names a run before
// it starts.
func NewRunID() string { return checkpoint.NewRunID(time.Now()) }

package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/host/internal/engine"
	"github.com/the-edge-agent/tea/host/internal/engine/replay"
	tea "github.com/the-edge-agent/tea/sdk"
)

// ErrWorkflowChanged reports that the workflow differs from the version with which
// the run began.
var ErrWorkflowChanged = errors.New("the workflow has changed since the run began")

// ErrInputUnused reports that no node is left to run that could use the input.
// The run is unchanged.
var ErrInputUnused = engine.ErrInputUnused

// ErrNothingFailed reports a resume with RetryFailed of a run that is done and has no
// failed branches.
var ErrNothingFailed = engine.ErrNothingFailed

// ErrDurabilityOff reports a resume or a fork that would not record its work, so that
// the next resume would repeat it.
var ErrDurabilityOff = errors.New("durability off: a run that continues from a checkpoint needs one; use exit, async or sync")

// ErrUnknownInterrupt reports an answer to an interrupt that is not pending: it was
// answered before, or its id is wrong. The run is unchanged.
var ErrUnknownInterrupt = errors.New("no such interrupt is pending")

// InUseError reports a run that is in progress, in this process or another.
type InUseError = checkpoint.InUseError

// Resume continues a run of this workflow. run is its id, a unique prefix of the id,
// or the path of its checkpoint file. Nodes that finished are not run again.
//
// The error is [ErrWorkflowChanged] if the workflow differs from the run's, unless
// Force or Migrate is set; [ErrInputUnused] for input if no node is left to run;
// [ErrUnknownInterrupt]; an [*InUseError]; [ErrDurabilityOff]; or an error of
// [Workflow.Run].
func (wf *Workflow) Resume(ctx context.Context, run string, o RunOptions) (*flow.Result, error) {
	if wf.closed.Load() || wf.host.closed.Load() {
		return nil, ErrClosed
	}
	store, err := o.openStore(run)
	if err != nil {
		return nil, err
	}
	if o.DryRun {
		contents, err := store.Show(run)
		if err != nil {
			return nil, err
		}
		eo, err := wf.replayOptions(ctx, contents, o)
		if err != nil {
			return nil, err
		}
		return engine.Execute(ctx, eo)
	}
	journal, contents, err := store.Open(run, o.Durability)
	if err != nil {
		return nil, err
	}
	for _, note := range contents.Notes {
		wf.host.log.Warn(fmt.Sprintf("the checkpoint of the run %s was repaired: %s", contents.Header.RunID, note))
	}
	eo, err := wf.replayOptions(ctx, contents, o)
	if err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	return wf.newKeeper(store, journal, o.Durability).run(ctx, eo)
}

// Fork starts a new run with the records of another run of this workflow, up to and
// including record number at, and continues it. run and the errors are as for
// [Workflow.Resume]. The new run and its input are created atomically.
func (wf *Workflow) Fork(ctx context.Context, run string, at uint64, o RunOptions) (*flow.Result, error) {
	if wf.closed.Load() || wf.host.closed.Load() {
		return nil, ErrClosed
	}
	store, err := o.openStore(run)
	if err != nil {
		return nil, err
	}
	source, err := store.Show(run)
	if err != nil {
		return nil, err
	}
	cut := *source
	cut.Records = source.Records[:min(at, uint64(len(source.Records)))]
	eo, err := wf.replayOptions(ctx, &cut, o)
	if err != nil {
		return nil, err
	}
	var given []checkpoint.Record
	if len(eo.Input) > 0 {
		record, err := replay.Encode("", &replay.ResumeInput{Values: eo.Input}, eo.Secrets)
		if err != nil {
			return nil, err
		}
		given = append(given, record)
	}
	eo.RunID = cmp.Or(o.RunID, checkpoint.NewRunID(time.Now()))
	journal, contents, err := store.Fork(source, at, eo.RunID, o.Durability, given...)
	if err != nil {
		return nil, err
	}
	eo.Replay = contents.Records
	res, err := wf.newKeeper(store, journal, o.Durability).run(ctx, eo)
	if errors.Is(err, ErrInputUnused) {
		err = errors.Join(err, store.Remove(eo.RunID)) // nothing has run
	}
	return res, err
}

// openStore opens the directory of an existing run and completes the options.
func (o *RunOptions) openStore(run string) (*checkpoint.Store, error) {
	o.CheckpointDir = cmp.Or(o.CheckpointDir, filepath.Dir(run))
	o.Durability = cmp.Or(o.Durability, flow.DurabilitySync)
	if o.Durability == flow.DurabilityOff {
		return nil, ErrDurabilityOff
	}
	return checkpoint.OpenStore(o.CheckpointDir)
}

// replayOptions returns the options of a run that continues from these contents.
func (wf *Workflow) replayOptions(ctx context.Context, c *checkpoint.Contents, o RunOptions) (engine.Options, error) {
	return wf.replayOptionsAt(ctx, c, o, time.Now())
}

func (wf *Workflow) replayOptionsAt(ctx context.Context, c *checkpoint.Contents, o RunOptions, now time.Time) (engine.Options, error) {
	h := c.Header
	changed := h.Digest != wf.spec.Digest
	if changed && !o.Force && !o.Migrate {
		return engine.Options{}, fmt.Errorf("run %s: %w; resume with --migrate to use the new version if everything that the run used still exists, or with --force", h.RunID, ErrWorkflowChanged)
	}
	o.RunID = h.RunID
	eo, err := wf.engineOptions(o)
	if err != nil {
		return eo, err
	}
	if err := wf.graph.MissingSecrets(o.Secrets).Err(); err != nil {
		return eo, err
	}
	eo.Replay = c.Records
	if err := checkResume(c.Records, eo, now); err != nil {
		return eo, err
	}
	if changed && !o.Force {
		if err := engine.Fits(ctx, eo); err != nil {
			return eo, fmt.Errorf("run %s cannot be migrated: %w", h.RunID, err)
		}
	}
	return eo, nil
}

// checkResume rejects, before anything runs, invalid input and answers, answers
// without an interrupt, and answers after the deadline.
func checkResume(records []checkpoint.Record, o engine.Options, now time.Time) error {
	if len(o.Answers) == 0 && len(o.Input) == 0 {
		return nil
	}
	pending, err := replay.Pending(records, o.Secrets)
	if err != nil {
		return err
	}
	if err := engine.CheckInput(o.Graph, o.Input, pending); err != nil {
		return err
	}
	var faults []error
	for id, answer := range o.Answers {
		i := slices.IndexFunc(pending, func(i flow.Interrupt) bool { return i.ID == id })
		if i < 0 {
			faults = append(faults, fmt.Errorf("%q: %w; waiting: %s", id, ErrUnknownInterrupt, idsOf(pending)))
			continue
		}
		if end := pending[i].Deadline; !end.IsZero() && !now.Before(end) {
			faults = append(faults, tea.Errorf(tea.ValidationError, "the answer to %s is too late: its deadline was %s; a resume without an answer applies on_timeout (%s)", id, end.Local().Format(time.DateTime), pending[i].OnTimeout))
			continue
		}
		faults = append(faults, engine.CheckAnswer(o.Graph, pending[i], answer))
	}
	return errors.Join(faults...)
}

func idsOf(pending []flow.Interrupt) string {
	if len(pending) == 0 {
		return "none"
	}
	ids := make([]string, len(pending))
	for i, p := range pending {
		ids[i] = p.ID
	}
	return strings.Join(ids, ", ")
}

// RunInfo describes a run before its workflow is loaded; see [Host.LoadRun].
type RunInfo struct {
	RunID, Workflow string
	// WorkflowFile is the path of the workflow when the run began, Digest the
	// digest of its content.
	WorkflowFile, Digest string
	// Overlays and Config are the ones with which the workflow was loaded. Config
	// has *** in place of secrets.
	Overlays []string
	Config   string
	Path     string

	// config is Config with references to the secrets.
	config string
	// dataDir is the run's, or [LoadRunOptions.DataDir]; nil for the directory of
	// the workflow.
	dataDir func(workflow string) string
}

// FindRun reads the workflow of a run from the run's checkpoint. run is as for
// [Workflow.Resume]; dir is the checkpoint directory.
func FindRun(dir, run string) (*RunInfo, error) {
	store, err := checkpoint.ViewStore(dir)
	if err != nil {
		return nil, err
	}
	path, err := store.Find(run)
	if err != nil {
		return nil, err
	}
	contents, err := checkpoint.Read(path)
	if err != nil {
		return nil, err
	}
	h := contents.Header
	info := &RunInfo{RunID: h.RunID, Workflow: h.Workflow, WorkflowFile: h.WorkflowFile, Digest: h.Digest, Path: path}
	if len(contents.Records) == 0 {
		return nil, &checkpoint.NoStartError{Path: path}
	}
	origin, err := replay.OriginOf(contents.Records[0])
	if err != nil {
		return nil, fmt.Errorf("read the start of run %s: %w", info.RunID, err)
	}
	shown, err := replay.OriginOf(replay.Masked(contents.Records[:1])[0])
	if err != nil {
		return nil, fmt.Errorf("read the start of run %s: %w", info.RunID, err)
	}
	info.Overlays, info.Config, info.config = origin.Overlays, shown.Config, origin.Config
	if data := origin.DataDir; data != "" {
		// The data directory moves together with the directory of runs.
		moved := filepath.Join(filepath.Dir(path), "data", filepath.Base(data))
		if info, err := os.Stat(moved); err == nil && info.IsDir() {
			data = moved
		}
		info.dataDir = func(string) string { return data }
	}
	return info, nil
}

package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/host/internal/engine"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// ErrWorkflowChanged says that a run's workflow is not the one it began with.
var ErrWorkflowChanged = errors.New("the workflow has changed since the run began")

// ErrInputUnused says that nothing was left to run which input could change;
// the run is as it was.
var ErrInputUnused = engine.ErrInputUnused

// Resume goes on with a run of this workflow: a run id, the unique beginning
// of one, or the path of a checkpoint file. What finished is not run again.
// A workflow that has changed is refused with [ErrWorkflowChanged] unless
// Force or Migrate say otherwise, and input where nothing is left to run with
// [ErrInputUnused].
func (wf *Workflow) Resume(ctx context.Context, run string, o RunOptions) (*Result, error) {
	dir := o.CheckpointDir
	if dir == "" {
		dir = filepath.Dir(run)
	}
	o.CheckpointDir = dir
	store, err := checkpoint.OpenStore(dir)
	if err != nil {
		return nil, err
	}
	durability := o.Durability
	if durability == "" {
		durability = DurabilitySync
	}
	journal, contents, err := store.Open(run, durability)
	if err != nil {
		return nil, err
	}
	h := contents.Header
	if h.Digest != wf.spec.Digest && !o.Force && !o.Migrate {
		return nil, errors.Join(fmt.Errorf("run %s: %w; resume with --migrate to take the new one where everything the run used is still there, or with --force", h.RunID, ErrWorkflowChanged), journal.Close())
	}
	for _, note := range contents.Notes {
		wf.host.log.Warn("checkpoint repaired", "run", h.RunID, "note", note)
	}
	o.RunID = h.RunID
	eo, err := wf.engineOptions(o)
	if err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	eo.Replay = contents.Records
	if err := checkAnswers(contents.Records, eo, time.Now()); err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	if h.Digest != wf.spec.Digest && !o.Force {
		if err := engine.Fits(ctx, eo); err != nil {
			return nil, errors.Join(fmt.Errorf("run %s cannot be migrated: %w", h.RunID, err), journal.Close())
		}
	}
	k := &keeper{store: store, journal: journal, events: newEventKeeper(store, h.RunID, durability)}
	return k.run(ctx, eo)
}

// checkAnswers refuses answers to nothing, answers that do not fit and those
// that come after the deadline, before anything goes on.
func checkAnswers(records []checkpoint.Record, o engine.Options, now time.Time) error {
	if len(o.Answers) == 0 {
		return nil
	}
	pending, err := engine.Pending(records, o.Secrets)
	if err != nil {
		return err
	}
	var faults []error
	for id, answer := range o.Answers {
		i := slices.IndexFunc(pending, func(i Interrupt) bool { return i.ID == id })
		if i < 0 {
			faults = append(faults, fmt.Errorf("no interrupt %q waits for an answer; waiting: %s", id, idsOf(pending)))
			continue
		}
		if end := pending[i].Deadline; !end.IsZero() && !now.Before(end) {
			faults = append(faults, tea.Errorf(tea.ValidationError, "the answer to %s comes too late: it was to be answered by %s; a resume without an answer does what on_timeout says (%s)", id, end.Local().Format(time.DateTime), pending[i].OnTimeout))
			continue
		}
		faults = append(faults, pending[i].Check(answer))
	}
	return errors.Join(faults...)
}

func idsOf(pending []Interrupt) string {
	if len(pending) == 0 {
		return "none"
	}
	ids := make([]string, len(pending))
	for i, p := range pending {
		ids[i] = p.ID
	}
	return strings.Join(ids, ", ")
}

// RunInfo is what a checkpoint says of a run before its workflow is loaded.
type RunInfo struct {
	RunID, Workflow, WorkflowFile string
	// Overlays and Config are how the workflow was loaded.
	Overlays []string
	Config   string
	Path     string
}

// FindRun reads the beginning of a run's checkpoint: which workflow it needs.
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
	info := &RunInfo{RunID: contents.Header.RunID, Workflow: contents.Header.Workflow, WorkflowFile: contents.Header.WorkflowFile, Path: path}
	if len(contents.Records) == 0 {
		return info, nil
	}
	v, err := value.Decode(contents.Records[0].Body)
	if err != nil {
		return nil, fmt.Errorf("read the start of run %s: %w", info.RunID, err)
	}
	start, _ := v.(map[string]any)
	info.Config, _ = start["config"].(string)
	overlays, _ := start["overlays"].([]any)
	for _, o := range overlays {
		if text, ok := o.(string); ok {
			info.Overlays = append(info.Overlays, text)
		}
	}
	return info, nil
}

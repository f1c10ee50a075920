package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/host/internal/engine/replay"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Runs is a checkpoint directory, for reading and pruning its runs. Open it with
// [OpenRuns]; it need not be closed. It is safe for concurrent use, also while other
// processes write runs.
type Runs struct{ store *checkpoint.Store }

// The contents of a checkpoint directory.
type (
	// RunEntry is a run in the list of runs.
	RunEntry = checkpoint.Info
	// RunContents are the contents of a run's checkpoint.
	RunContents = checkpoint.Contents
	// Record is one entry of a checkpoint.
	Record = checkpoint.Record
	// PrunePolicy selects the runs to remove.
	PrunePolicy = checkpoint.Policy
)

// DefaultPrunePolicy returns the policy that applies when a new run starts.
func DefaultPrunePolicy() PrunePolicy { return checkpoint.DefaultPolicy() }

// OpenRuns opens a directory of runs. The error is fs.ErrNotExist if there is none.
func OpenRuns(dir string) (*Runs, error) {
	store, err := checkpoint.ViewStore(dir)
	if err != nil {
		return nil, err
	}
	return &Runs{store}, nil
}

// List returns the runs, newest first. The entry of a damaged run has the reason.
func (r *Runs) List() ([]RunEntry, error) { return r.store.List() }

// Show reads one run by its id, a unique prefix of the id, or the path of its
// checkpoint.
func (r *Runs) Show(run string) (*RunContents, error) {
	path, err := r.store.Find(run)
	if err != nil {
		return nil, err
	}
	return checkpoint.Read(path)
}

// Prune removes old runs and returns their ids.
func (r *Runs) Prune(p PrunePolicy) ([]string, error) { return r.store.GC(p, time.Now()) }

// Stop records that a run that is not running was stopped, and why. The run no longer
// waits, and can be resumed like any stopped run. When Stop returns without an error,
// the record is on disk.
func (r *Runs) Stop(run, reason string) error {
	entry, err := r.Entry(run)
	if err != nil {
		return err
	}
	journal, _, err := r.store.Open(run, flow.DurabilitySync)
	if err != nil {
		return err
	}
	record, err := replay.Encode("", &replay.Status{Status: flow.Stopped, Node: entry.Node, Error: reason, FailedBranches: entry.FailedBranches}, nil)
	if err == nil {
		err = journal.Append(record)
	}
	return errors.Join(err, journal.Close())
}

// Remove removes one run.
func (r *Runs) Remove(run string) error { return r.store.Remove(run) }

// Events calls fn with a run's stored events after the given seq, in order; see
// [RunEvents.Next].
func (r *Runs) Events(run string, after int64, fn func(seq int64, line []byte) error) error {
	events, err := r.OpenEvents(run, after)
	if err != nil {
		return err
	}
	return events.Next(fn)
}

// OpenEvents returns the stored events of a run after the given seq.
func (r *Runs) OpenEvents(run string, after int64) (*RunEvents, error) {
	contents, err := r.Show(run)
	if err != nil {
		return nil, err
	}
	id := contents.Header.RunID
	return &RunEvents{run: id, after: after, log: checkpoint.EventReader{Path: r.store.EventsPath(id), After: uint64(max(after, 0))}}, nil
}

// RunEvents are the stored events of a run, which can still be running. It is not
// safe for concurrent use.
type RunEvents struct {
	run   string
	after int64
	log   checkpoint.EventReader
}

// Next calls fn with each event that was stored since the last call, in order, as a
// line of JSON that is valid only during the call. Tokens, which are stored in groups,
// are passed one by one as they were streamed, with the ts of the first token of their
// group.
func (e *RunEvents) Next(fn func(seq int64, line []byte) error) error {
	reader := eventReader{after: e.after, fn: fn}
	err := e.log.Read(func(seq uint64, line []byte) error { return reader.line(int64(seq), line) })
	if err == nil {
		err = reader.flush()
	}
	if err != nil {
		return fmt.Errorf("read the events of run %s: %w", e.run, err)
	}
	return nil
}

// Pending returns the interrupts that wait in a checkpoint, with *** in place of
// secrets.
func Pending(contents *RunContents) ([]flow.Interrupt, error) {
	return replay.Pending(maskRecords(contents.Records), nil)
}

// RunFailure has the failures of the last status in a checkpoint, with *** in
// place of secrets.
type RunFailure struct {
	// Error is why the run failed or stopped.
	Error string `json:"error,omitempty"`
	// Failures and FailedBranches are as in [flow.Result].
	Failures       []flow.Failure `json:"failures,omitempty"`
	FailedBranches int            `json:"failed_branches,omitempty"`
}

// FailureOf returns the failures of a run.
func FailureOf(contents *RunContents) (f RunFailure, err error) {
	for _, rec := range slices.Backward(contents.Records) {
		if rec.Kind == checkpoint.KindStatus {
			err = json.Unmarshal(masked(rec.Body), &f)
			break
		}
	}
	return f, err
}

// sealed matches a reference to a secret in a record's JSON.
var sealed = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\u0000s(?:[^\\]|\\[^u])*\\u0000`) })

// RecordValue returns the body of a record in the value model, with *** in place
// of secrets.
func RecordValue(rec Record) (any, error) {
	if len(rec.Body) == 0 {
		return nil, nil
	}
	v, err := value.Decode(masked(rec.Body))
	if err != nil {
		return nil, fmt.Errorf("read record %d: %w", rec.Seq, err)
	}
	return v, nil
}

// ErrNoStep reports that a run does not have the requested record.
var ErrNoStep = errors.New("no such step")

// Step returns the number of a record, given its number or the path of a node. For a
// node it is the last record in which the node ended. The error is [ErrNoStep] if
// there is none.
func (r *Runs) Step(run, step string) (uint64, error) {
	contents, err := r.Show(run)
	if err != nil {
		return 0, err
	}
	return StepOf(contents.Header.RunID, contents.Records, step)
}

// StepOf is [Runs.Step] for the records of a run.
func StepOf(run string, records []Record, step string) (uint64, error) {
	if seq, err := strconv.ParseUint(step, 10, 64); err == nil {
		if last := len(records); seq < 1 || seq > uint64(last) {
			return 0, fmt.Errorf("run %s: %w: it has records 1 to %d", run, ErrNoStep, last)
		}
		return seq, nil
	}
	for _, rec := range slices.Backward(records) {
		if rec.Path == step && rec.Kind == replay.KindNode {
			return rec.Seq, nil
		}
	}
	return 0, fmt.Errorf("run %s: %w: no node %q has ended", run, ErrNoStep, step)
}

// Prunable returns the ids of the runs that Prune would remove.
func (r *Runs) Prunable(p PrunePolicy) ([]string, error) { return r.store.Prunable(p, time.Now()) }

// Entry returns one run as List does.
func (r *Runs) Entry(run string) (RunEntry, error) { return r.store.Info(run) }

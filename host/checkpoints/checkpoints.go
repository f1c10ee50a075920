package checkpoints

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/host/internal/engine/replay"
	"github.com/the-edge-agent/tea/host/internal/secret"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Dir is a checkpoint directory, for reading and pruning its runs. Open it with
// [Open]; it need not be closed. It is safe for concurrent use, also while other
// processes write runs.
type Dir struct{ store *checkpoint.Store }

// The contents of a checkpoint directory.
type (
	// Entry is a run in the list of runs.
	Entry = checkpoint.Info
	// Contents are the contents of a run's checkpoint.
	Contents = checkpoint.Contents
	// Record is one entry of a checkpoint.
	Record = checkpoint.Record
	// Index keeps the entries of a directory in memory.
	Index = checkpoint.Index
	// Policy selects the runs to remove.
	Policy = checkpoint.Policy
)

// DefaultPolicy returns the policy that applies when a new run starts.
func DefaultPolicy() Policy { return checkpoint.DefaultPolicy() }

// Open opens a directory of runs. The error is fs.ErrNotExist if there is none.
func Open(dir string) (*Dir, error) {
	store, err := checkpoint.ViewStore(dir)
	if err != nil {
		return nil, err
	}
	return &Dir{store}, nil
}

// Path returns the path of the directory.
func (d *Dir) Path() string { return d.store.Dir() }

// List returns the runs, newest first. The entry of a damaged run describes the damage.
func (d *Dir) List() ([]Entry, error) { return d.store.List() }

// Index returns an empty index of the directory.
func (d *Dir) Index() *Index { return checkpoint.NewIndex(d.store) }

// Show reads one run by its id, a unique prefix of the id, or the path of its
// checkpoint.
func (d *Dir) Show(run string) (*Contents, error) { return d.store.Show(run) }

// Prune removes old runs and returns their ids.
func (d *Dir) Prune(p Policy) ([]string, error) { return d.store.GC(p, time.Now()) }

// Stop records that a run that is not running was stopped, and why. The run no longer
// waits, and can be resumed like any stopped run. When Stop returns without an error,
// the record is on disk.
func (d *Dir) Stop(run, reason string) error {
	entry, err := d.Entry(run)
	if err != nil {
		return err
	}
	journal, _, err := d.store.Open(run, flow.DurabilitySync)
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
func (d *Dir) Remove(run string) error { return d.store.Remove(run) }

// Events calls fn with a run's stored events after the given seq, in order; see
// [Events.Next].
func (d *Dir) Events(run string, after int64, fn func(seq int64, line []byte) error) error {
	events, err := d.OpenEvents(run, after)
	if err != nil {
		return err
	}
	return events.Next(fn)
}

// Pending returns the interrupts that wait in a checkpoint, with *** in place of
// secrets.
func Pending(contents *Contents) ([]flow.Interrupt, error) {
	return replay.Pending(replay.Masked(contents.Records), nil)
}

// Failure has the failures of the last status in a checkpoint, with *** in
// place of secrets.
type Failure struct {
	// Error is why the run failed or stopped.
	Error string `json:"error,omitempty"`
	// Failures and FailedBranches are as in [flow.Result].
	Failures       []flow.Failure `json:"failures,omitempty"`
	FailedBranches int            `json:"failed_branches,omitempty"`
}

// FailureOf returns the failures of a run.
func FailureOf(contents *Contents) (f Failure, err error) {
	for _, rec := range slices.Backward(contents.Records) {
		if rec.Kind == checkpoint.KindStatus {
			err = json.Unmarshal(secret.MaskJSON(rec.Body), &f)
			break
		}
	}
	return f, err
}

// Value returns the body of a record in the value model, with *** in place
// of secrets.
func Value(rec Record) (any, error) {
	if len(rec.Body) == 0 {
		return nil, nil
	}
	v, err := value.Decode(secret.MaskJSON(rec.Body))
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
func (d *Dir) Step(run, step string) (uint64, error) {
	contents, err := d.Show(run)
	if err != nil {
		return 0, err
	}
	return StepOf(contents.Header.RunID, contents.Records, step)
}

// StepOf is [Dir.Step] for the records of a run.
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
func (d *Dir) Prunable(p Policy) ([]string, error) { return d.store.Prunable(p, time.Now()) }

// Entry returns one run as List does.
func (d *Dir) Entry(run string) (Entry, error) { return d.store.Info(run) }

// FinishedNodes counts the executions of nodes that a run has recorded. If the count
// does not grow between crashes, the run makes no progress.
func FinishedNodes(contents *Contents) int {
	n := 0
	for _, r := range contents.Records {
		if r.Kind == replay.KindNode {
			n++
		}
	}
	return n
}

// UsageAt returns the usage of a run at a record, which is part of the usage of a fork
// at this record.
func UsageAt(contents *Contents, at uint64) (flow.Usage, error) {
	p, err := replay.New(replay.Masked(contents.Records[:min(at, uint64(len(contents.Records)))]), nil, false)
	if err != nil {
		return flow.Usage{}, err
	}
	return p.Used, nil
}

package host

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/host/internal/engine/replay"
	"github.com/the-edge-agent/tea/sdk/value"
)

// sealed is how a reference to a secret stands in a record's JSON.
var sealed = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\u0000s(?:[^\\]|\\[^u])*\\u0000`) })

// RecordValue gives what a record says, for people: in the place of a secret
// stands ***.
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

// ErrNoStep says that a run has no record of the kind that was asked for.
var ErrNoStep = errors.New("no such step")

// Step finds a record of a run by its number, or by the path of a node: then
// it is the last one in which the node ended, or else [ErrNoStep].
func (r *Runs) Step(run, step string) (uint64, error) {
	contents, err := r.Show(run)
	if err != nil {
		return 0, err
	}
	if seq, err := strconv.ParseUint(step, 10, 64); err == nil {
		if last := len(contents.Records); seq < 1 || seq > uint64(last) {
			return 0, fmt.Errorf("run %s: %w: it has records 1 to %d", contents.Header.RunID, ErrNoStep, last)
		}
		return seq, nil
	}
	for _, rec := range slices.Backward(contents.Records) {
		if rec.Path == step && rec.Kind == replay.KindNode {
			return rec.Seq, nil
		}
	}
	return 0, fmt.Errorf("run %s: %w: no node %q has ended", contents.Header.RunID, ErrNoStep, step)
}

// Prunable gives the ids of the runs that Prune would remove.
func (r *Runs) Prunable(p PrunePolicy) ([]string, error) { return r.store.Prunable(p, time.Now()) }

// Entry gives one run as List does.
func (r *Runs) Entry(run string) (RunEntry, error) { return r.store.Info(run) }

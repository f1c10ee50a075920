package engine

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/checkpoint"
)

// A failed branch that a fan-in node has looked at is an outcome like any
// other. To run it again, a retry record takes the outcome back, and with it
// everything that came after it: the fan-in node and what follows in its
// frame, and the same in the frames around. What happened beside it, in the
// branches that succeeded, stays. So does what the branch itself did before
// it failed.
//
// The containers around a retried branch count as unfinished. When a frame has
// walked its branches again, the records up to the retry are void for the rest
// of the frame ([frame.void]).

// ErrNothingFailed is the error of a retry where no branch failed.
var ErrNothingFailed = errors.New("nothing to retry: no branch of the run has failed")

// isStale reports whether a record of a kind is void: it is not behind seq.
func (p *replay) isStale(kind, key string, seq uint64) bool {
	return seq > 0 && p.seqs[kind+" "+key] <= seq
}

// stamp notes the number of the last record of a kind, where somebody asks.
func (p *replay) stamp(kind, key string, seq uint64) {
	if p.seqs != nil {
		p.seqs[kind+" "+key] = seq
	}
}

// node finds the record of a node that counts in a frame.
func (p *replay) node(path string, void uint64) *nodeRecord {
	n := p.nodes[path]
	if n != nil && p.isStale(kindNode, path, max(void, p.redone[path])) {
		return nil
	}
	return n
}

// branch finds the outcome of a branch that counts in a frame.
func (p *replay) branch(path string, void uint64) (map[string]any, bool) {
	b, ok := p.branches[path]
	return b, ok && !p.isStale(kindBranch, path, max(void, p.redone[path]))
}

// retry takes the outcome of a branch back: records up to seq are void for it,
// and for the containers around it. The node behind which it began has ended.
func (p *replay) retry(path string, seq uint64) {
	for path != "" {
		p.redone[path] = max(p.redone[path], seq)
		for {
			i := strings.LastIndexAny(path, pathBorders)
			if i < 0 {
				return
			}
			isFanOut := path[i] == '>'
			if path = path[:i]; !isFanOut {
				break
			}
		}
	}
}

// retryFailed takes the outcomes of all failed branches back and returns their
// paths, in order.
func (p *replay) retryFailed(last uint64) []string {
	var paths []string
	for _, path := range slices.Sorted(maps.Keys(p.branches)) {
		if _, counts := p.branch(path, 0); counts {
			paths = append(paths, path)
		}
	}
	for _, path := range paths {
		p.retry(path, last)
	}
	return paths
}

// hasRetries reports whether records hold a retry.
func hasRetries(records []checkpoint.Record) bool {
	return slices.ContainsFunc(records, func(rec checkpoint.Record) bool { return rec.Kind == kindRetry })
}

// beginRetry takes back what failed, durably, before anything runs.
func (r *run) beginRetry() error {
	if !r.o.RetryFailed || len(r.o.Replay) == 0 {
		return nil
	}
	paths := r.replay.retryFailed(r.o.Replay[len(r.o.Replay)-1].Seq)
	if len(paths) == 0 {
		if r.replay.done {
			return ErrNothingFailed
		}
		return nil
	}
	list := make([]any, len(paths))
	for i, path := range paths {
		list[i] = path
	}
	r.replay.done = false
	return r.append(kindRetry, "", map[string]any{"paths": list})
}

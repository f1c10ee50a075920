package replay

import (
	"maps"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/internal/execpath"
)

// A failed branch that a fan-in node has read is an outcome like any other. To run
// it again, a retry record revokes the outcome and everything after it: the fan-in
// node and what follows in its frame, and the same in the outer frames. Branches
// that succeeded keep their records, and so does the failed branch for the nodes
// that it completed.
//
// The containers of a retried branch count as unfinished. When a frame has walked
// its branches again, the records up to the retry are void for the rest of the
// frame: [Replay.Redone].

// isStale reports whether the last record with a kind and name is void: its number
// is not greater than seq.
func (p *Replay) isStale(what byte, name string, seq uint64) bool {
	return seq > 0 && p.seqs[stamp{what, name}] <= seq
}

// stamp stores the number of the last record with a name, if there are retries.
func (p *Replay) stamp(what byte, name string, seq uint64) {
	if p.seqs != nil {
		p.seqs[stamp{what, name}] = seq
	}
}

// Redone returns the highest number of the records that are void because the branch
// ran again; 0 if it did not.
func (p *Replay) Redone(path execpath.Path) uint64 { return p.redone[path] }

// Node returns the record of a node, nil if there is no valid one.
func (p *Replay) Node(path execpath.Path, void uint64) *Node {
	n := p.nodes[path]
	if n != nil && p.isStale(stampNode, string(path), max(void, p.redone[path])) {
		return nil
	}
	return n
}

// Branch returns the outcome of a failed branch, nil if there is no valid one.
func (p *Replay) Branch(path execpath.Path, void uint64) *Branch {
	b := p.branches[path]
	if b != nil && p.isStale(stampBranch, string(path), max(void, p.redone[path])) {
		return nil
	}
	return b
}

// retry revokes the outcome of a branch: records up to seq are void for it and its
// containers, except for the node before its fan-out, which has ended.
func (p *Replay) retry(path execpath.Path, seq uint64) {
	for path != "" {
		p.redone[path] = max(p.redone[path], seq)
		for path.IsBranch() {
			path = path.Outer()
		}
		path = path.Outer()
	}
}

// isBehind reports whether a place follows a branch that runs again, in its frame
// or in an outer frame, outside the fan-outs that contain the branch.
func isBehind(place, branch execpath.Path) bool {
	for at := branch; at != ""; {
		fan := at
		for fan.IsBranch() {
			fan = fan.Outer()
		}
		if strings.HasSuffix(string(fan), "]") { // an item of a map, or an iteration of a loop
			fan = fan.Outer()
		}
		if fan != at && place.Below(fan) {
			return false
		}
		at = fan.Outer()
		if at == "" || place.Below(at) {
			return true
		}
	}
	return false
}

// Retry revokes the outcomes of all failed branches, like a retry record after the
// last one, and returns their paths, in order. It must not be called concurrently
// with other methods.
func (p *Replay) Retry(last uint64) []execpath.Path {
	var paths []execpath.Path
	for _, path := range slices.Sorted(maps.Keys(p.branches)) {
		if p.Branch(path, 0) != nil {
			paths = append(paths, path)
		}
	}
	for _, path := range paths {
		p.retry(path, last)
	}
	p.Done = p.Done && len(paths) == 0
	return paths
}

// hasRetries reports whether the records contain a retry.
func hasRetries(records []checkpoint.Record) bool {
	kind := (*Retry)(nil).kind()
	return slices.ContainsFunc(records, func(rec checkpoint.Record) bool { return rec.Kind == kind })
}

// Left returns the recorded nodes that were not walked, in order. walked reports
// whether the nodes inside a node are walked too. Attempts before the last one are
// not walked again.
func (p *Replay) Left(walked map[execpath.Path]bool) []execpath.Path {
	var left []execpath.Path
	for _, path := range slices.Sorted(maps.Keys(p.nodes)) {
		if _, ok := walked[path]; !ok && path.WithoutAttempts() == path && !p.retried(path) && !closed(path, walked) {
			left = append(left, path)
		}
	}
	return left
}

// closed reports whether a path is inside a node whose inner nodes are not walked.
func closed(path execpath.Path, walked map[execpath.Path]bool) bool {
	for path = path.Outer(); path != ""; path = path.Outer() {
		if inside, ok := walked[path]; ok && !inside {
			return true
		}
	}
	return false
}

// retried reports whether a path is inside something that was retried.
func (p *Replay) retried(path execpath.Path) bool {
	for at := range p.attempts {
		if path.Below(at) {
			return true
		}
	}
	return false
}

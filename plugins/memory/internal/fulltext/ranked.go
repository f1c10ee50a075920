package fulltext

import (
	"iter"
	"slices"
	"sync"
)

// Hit is a document that was found.
type Hit struct {
	ID    int64
	Score float64
}

// before reports whether h ranks before other: a greater score, otherwise a
// smaller ID.
func (h Hit) before(other Hit) bool {
	if h.Score != other.Score {
		return h.Score > other.Score
	}
	return h.ID < other.ID
}

// Ranked is the result of a search. It is sorted while it is read, so reading the first few hits of many is cheap.
// Changes of the index do not affect it. It is safe for concurrent use.
type Ranked struct {
	cut     bool
	partial bool
	len     int

	mu   sync.Mutex
	rest []Hit // a heap with the best hit on top
	done []Hit // in order
}

func newRanked(hits []Hit, cut bool) *Ranked {
	buildHeap(hits)
	return &Ranked{cut: cut, len: len(hits), rest: hits}
}

// Len returns the number of hits.
func (r *Ranked) Len() int { return r.len }

// Partial reports whether there can be more hits than the search's limit.
func (r *Ranked) Partial() bool { return r.partial }

// Cut reports whether a part of the query was ignored because of its size.
func (r *Ranked) Cut() bool { return r.cut }

// Keep removes the hits whose ids keep rejects. It must not be called during an
// iteration.
func (r *Ranked) Keep(keep func(id int64) bool) {
	hits := slices.DeleteFunc(append(r.done, r.rest...), func(h Hit) bool { return !keep(h.ID) })
	r.len, r.rest, r.done = len(hits), hits, nil
	buildHeap(r.rest)
}

// All returns the hits, best first; equal scores by ID. Each call starts with the
// best hit.
func (r *Ranked) All() iter.Seq[Hit] {
	return func(yield func(Hit) bool) {
		for i := range r.len {
			if !yield(r.at(i)) {
				return
			}
		}
	}
}

// Top returns the first n hits of All, or all of them if there are fewer.
func (r *Ranked) Top(n int) []Hit {
	n = max(0, min(n, r.len))
	if n > 0 {
		r.at(n - 1)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.done[:n])
}

func (r *Ranked) at(i int) Hit {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i >= len(r.done) {
		last := len(r.rest) - 1
		r.done = append(r.done, r.rest[0])
		r.rest[0] = r.rest[last]
		r.rest = r.rest[:last]
		sink(r.rest, 0)
	}
	return r.done[i]
}

// buildHeap makes a heap of hits, with the best one on top.
func buildHeap(heap []Hit) {
	for i := len(heap)/2 - 1; i >= 0; i-- {
		sink(heap, i)
	}
}

// sink moves a hit to its place in a heap.
func sink(heap []Hit, i int) {
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if child+1 < len(heap) && heap[child+1].before(heap[child]) {
			child++
		}
		if !heap[child].before(heap[i]) {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}

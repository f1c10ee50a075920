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

// before tells whether h comes before other: a greater score, else a smaller ID.
func (h Hit) before(other Hit) bool {
	if h.Score != other.Score {
		return h.Score > other.Score
	}
	return h.ID < other.ID
}

// Ranked is what a search has found. It is put in order as far as it is read,
// so taking the first few of very many is cheap, and nothing is lost: a caller
// that rejects hits just reads on. It holds no files and stays as it is while
// the index changes. It may be used concurrently.
type Ranked struct {
	accept func(id int64) bool
	limit  int
	cut    bool

	mu   sync.Mutex
	hits []Hit
	done int // so many are in their final place
	step int
}

// Len returns how many documents match, before Accept and Limit.
func (r *Ranked) Len() int { return len(r.hits) }

// Cut tells whether a part of the query was left out because of its size.
func (r *Ranked) Cut() bool { return r.cut }

// All returns the hits, best first; equal scores in the order of the IDs. Each
// call begins with the best one.
func (r *Ranked) All() iter.Seq[Hit] {
	return func(yield func(Hit) bool) {
		given := 0
		for i := range r.hits {
			hit := r.at(i)
			if r.accept != nil && !r.accept(hit.ID) {
				continue
			}
			if !yield(hit) {
				return
			}
			if given++; given == r.limit {
				return
			}
		}
	}
}

// Top returns the first n hits of All, or all of them if there are fewer.
func (r *Ranked) Top(n int) []Hit {
	var out []Hit
	if n <= 0 {
		return out
	}
	for hit := range r.All() {
		out = append(out, hit)
		if len(out) == n {
			break
		}
	}
	return out
}

// at returns hit number i.
func (r *Ranked) at(i int) Hit {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i >= r.done {
		r.step = max(64, 4*r.step)
		rest := r.hits[r.done:]
		n := min(r.step, len(rest))
		selectBest(rest, n)
		r.done += n
	}
	return r.hits[i]
}

// selectBest moves the n best hits to the front, in order.
func selectBest(hits []Hit, n int) {
	best := hits[:n]
	if n < len(hits) {
		// A heap with the worst of the best on top.
		for i := n/2 - 1; i >= 0; i-- {
			sink(best, i)
		}
		for i := n; i < len(hits); i++ {
			if hits[i].before(best[0]) {
				hits[i], best[0] = best[0], hits[i]
				sink(best, 0)
			}
		}
	}
	slices.SortFunc(best, func(a, b Hit) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
}

func sink(heap []Hit, i int) {
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if child+1 < len(heap) && heap[child].before(heap[child+1]) {
			child++
		}
		if !heap[i].before(heap[child]) {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}

package vector

import (
	"cmp"
	"slices"
)

// ranking keeps the best k hits that it is offered, the worst of them first.
type ranking struct {
	k    int
	hits []Hit
}

func newRanking(k int) *ranking { return &ranking{k: k, hits: make([]Hit, 0, k)} }

// clear forgets what was offered.
func (r *ranking) clear() { r.hits = r.hits[:0] }

// compareHits orders hits best first: by similarity, then by id.
func compareHits(a, b Hit) int {
	if c := cmp.Compare(b.Similarity, a.Similarity); c != 0 {
		return c
	}
	return cmp.Compare(a.ID, b.ID)
}

// beats reports whether a hit so similar may be among the best. One that is
// exactly as similar as the worst may, for its id.
func (r *ranking) beats(similarity float32) bool {
	return len(r.hits) < r.k || similarity >= r.hits[0].Similarity
}

// offer takes the hit in if it is among the best.
func (r *ranking) offer(h Hit) {
	if len(r.hits) < r.k {
		r.hits = append(r.hits, h)
		i := len(r.hits) - 1
		for i > 0 {
			parent := (i - 1) / 2
			if compareHits(r.hits[i], r.hits[parent]) <= 0 {
				return
			}
			r.hits[i], r.hits[parent] = r.hits[parent], r.hits[i]
			i = parent
		}
		return
	}
	if r.k == 0 || compareHits(h, r.hits[0]) >= 0 {
		return
	}
	r.hits[0] = h
	r.sink()
}

// sink moves the first hit to its place.
func (r *ranking) sink() {
	i := 0
	for {
		child := 2*i + 1
		if child >= len(r.hits) {
			return
		}
		if child+1 < len(r.hits) && compareHits(r.hits[child+1], r.hits[child]) > 0 {
			child++
		}
		if compareHits(r.hits[child], r.hits[i]) <= 0 {
			return
		}
		r.hits[i], r.hits[child] = r.hits[child], r.hits[i]
		i = child
	}
}

// recall returns which part of the hits is as similar as the best so many that
// there are, the truth.
func (r *ranking) recall(truth *ranking) float64 {
	found := 0
	for _, h := range r.hits {
		if h.Similarity >= truth.hits[0].Similarity {
			found++
		}
	}
	return float64(found) / float64(len(truth.hits))
}

// sorted returns the hits best first. The ranking is used up.
func (r *ranking) sorted() []Hit {
	slices.SortFunc(r.hits, compareHits)
	return r.hits
}

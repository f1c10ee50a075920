package vector

import (
	"context"
	"fmt"
	"math"
)

// sample is how many vectors a filter is tried on to guess what it lets pass.
const sample = 512

// Search returns the k vectors most similar to the query, best first, those
// equally similar by id; fewer if there are not so many. The same search of
// the same index has the same result. It sees every change that was made
// before it began and none that comes later. Where there is a graph, it may
// miss some: see Options.EfSearch.
//
// The errors are ErrDimension, ErrNotFinite, ErrClosed and the context's.
func (ix *Index) Search(ctx context.Context, query []float32, k int, options SearchOptions) ([]Hit, error) {
	row, directed, err := normalise(query, ix.options.Dimension)
	if err != nil {
		return nil, fmt.Errorf("search with the query: %w", err)
	}
	v, err := ix.look()
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	k = min(k, v.live)
	if k <= 0 {
		return []Hit{}, nil
	}
	best := &ranking{k: k, hits: make([]Hit, 0, k)}
	// The graph is of no use to a query that points nowhere.
	exact := options.Exact || !directed
	found, err := false, error(nil)
	if !exact {
		found, err = ix.searchGraph(ctx, v, row, options, best)
	}
	from := v.built
	if !found {
		from = 0
		best.hits = best.hits[:0]
	}
	if err == nil {
		err = v.scan(ctx, row, from, v.count, options.Accept, best)
	}
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	hits := best.sorted()
	for i := range hits {
		hits[i].Similarity += 0 // no negative zero
	}
	return hits, nil
}

// searchGraph offers what it finds in the graph to the ranking. It returns
// false if there is no graph, or comparing everything is quicker or finds
// more.
func (ix *Index) searchGraph(ctx context.Context, v *view, row []float32, options SearchOptions, best *ranking) (bool, error) {
	ef := options.Ef
	if ef <= 0 {
		ef = ix.options.EfSearch
	}
	ef = max(min(ef, v.live), best.k)
	top, entry, ok := unpackEntry(v.entry.Load())
	// The first of the tail may have become the entry after the view.
	if !ok || v.live <= ix.options.Exact || v.built == 0 || entry >= v.count {
		return false, nil
	}
	passes := func(slot uint32) bool { return slot < v.built && v.visible(slot) }
	// About how many vectors the search will compare.
	visits := int64(ef) * int64(v.m) * 3 / 2
	limit := int64(v.built) / 4
	if accept := options.Accept; accept != nil {
		passed, tried := v.try(accept)
		if passed == 0 {
			return false, nil
		}
		// What is not accepted is compared all the same in the graph, but not
		// when everything is.
		visits = visits * int64(tried) / int64(passed)
		limit /= 2
		passes = func(slot uint32) bool { return slot < v.built && v.visible(slot) && accept(v.id(slot)) }
	}
	if visits > limit {
		return false, nil
	}
	keep := func(slot uint32) bool { return v.any(slot, passes) }
	w := ix.walks.Get().(*walk)
	defer ix.walks.Put(w)
	nearest := w.descend(v, row, entry, top, 0, math.MaxUint32)
	w.begin(v.count)
	whole, err := w.layer(ctx, v, row, []item{nearest}, 0, ef, int(v.built)/2, keep)
	if err != nil || !whole {
		return false, err
	}
	for _, it := range w.best {
		for slot, more := ^it.slot, true; more; slot, more = v.after(slot) {
			if s := v.compare(slot, row); best.beats(s) && passes(slot) {
				best.offer(Hit{ID: v.id(slot), Similarity: s})
			}
		}
	}
	// With too few hits the walk has ended at a gap of tombstones, or what the
	// filter lets pass lies elsewhere.
	return len(best.hits) == best.k, nil
}

// try asks the filter about some of the vectors, always the same ones. They
// are scattered: a filter may well have a period.
func (v *view) try(accept func(int64) bool) (passed, tried int) {
	for i := range uint64(sample) {
		slot := uint32(scatter(i) % uint64(v.count))
		if !v.visible(slot) {
			continue
		}
		tried++
		if accept(v.id(slot)) {
			passed++
		}
	}
	return passed, tried
}

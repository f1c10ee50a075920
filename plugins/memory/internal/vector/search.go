package vector

import (
	"context"
	"fmt"
	"log/slog"
	"math"
)

// trial is how many vectors a filter is tried on to guess what it lets pass.
const trial = 512

// Search returns the k vectors most similar to the query, best first, those
// equally similar by id; fewer if there are not so many. It sees every change
// that was made before it began and none that comes later. Where there is a
// graph it may miss some, see Options.Recall: the part it misses depends on
// what earlier searches have shown, unless Exact or an Ef is set.
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
	best := newRanking(k)
	found := false
	// The graph is of no use to a query that points nowhere.
	if !options.Exact && directed {
		found, err = ix.searchGraph(ctx, v, row, options, best)
	}
	from := v.built
	if !found {
		from = 0
		best.clear()
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

// searchGraph offers what it finds among the slots in the graph to the
// ranking. It returns false if there is no graph, or comparing everything is
// quicker or finds more.
func (ix *Index) searchGraph(ctx context.Context, v *view, row []float32, options SearchOptions, best *ranking) (bool, error) {
	r, ok := ix.route(v, row, options.Accept)
	if !ok {
		return false, nil
	}
	ef := options.Ef
	if ef <= 0 {
		ef = ix.options.EfSearch
	}
	if ef <= 0 {
		return r.measured(ctx, best)
	}
	ef = max(min(ef, v.live), best.k)
	limit := r.built / 4
	if options.Accept != nil {
		limit /= 2
	}
	// About how many vectors the search will compare.
	if int64(ef)*int64(v.m)*3/2*int64(r.tried)/int64(r.passed) > int64(limit) {
		return false, nil
	}
	return r.walk(ctx, ef, r.built/2, best)
}

// route is what searches for one query in the graph have in common.
type route struct {
	ix     *Index
	v      *view
	row    []float32
	accept func(int64) bool
	top    int // layer of the entry
	entry  uint32
	built  int
	// What the filter lets pass of some vectors.
	passed, tried int
}

// route returns false if there is no graph, or the filter lets pass next to
// nothing of it.
func (ix *Index) route(v *view, row []float32, accept func(int64) bool) (*route, bool) {
	r := &route{ix: ix, v: v, row: row, accept: accept, built: int(v.built), passed: 1, tried: 1}
	var ok bool
	r.top, r.entry, ok = unpackEntry(v.entry.Load())
	// The first of the tail may have become the entry after the view.
	if !ok || v.live <= ix.options.Exact || v.built == 0 || r.entry >= v.count {
		return nil, false
	}
	if accept != nil {
		r.passed, r.tried = v.try(accept)
	}
	return r, r.passed > 0
}

// walk offers to the ranking what a search with ef candidates finds. It returns
// false if it would compare more vectors than the budget, or does not find
// enough.
func (r *route) walk(ctx context.Context, ef, budget int, best *ranking) (bool, error) {
	v := r.v
	passes := func(slot uint32) bool { return slot < v.built && v.visible(slot) }
	if r.accept != nil {
		// What is not accepted is compared all the same, see layer.
		passes = func(slot uint32) bool { return slot < v.built && v.visible(slot) && r.accept(v.id(slot)) }
	}
	keep := func(slot uint32) bool { return v.any(slot, passes) }
	w := r.ix.walks.Get().(*walk)
	defer r.ix.walks.Put(w)
	nearest := w.descend(v, r.row, r.entry, r.top, 0, math.MaxUint32)
	w.begin(v.count)
	whole, err := w.layer(ctx, v, r.row, []item{nearest}, 0, ef, budget, keep)
	if err != nil || !whole {
		return false, err
	}
	for _, it := range w.best {
		for slot, more := ^it.slot, true; more; slot, more = v.after(slot) {
			if s := v.compare(slot, r.row); best.beats(s) && passes(slot) {
				best.offer(Hit{ID: v.id(slot), Similarity: s})
			}
		}
	}
	// With too few hits the walk has ended at a gap of tombstones, or what the
	// filter lets pass lies elsewhere.
	return len(best.hits) == best.k, nil
}

// affordable is how many vectors a walk may compare. Each costs about four
// times as much as in a scan, which reads the memory in its order and on all
// cores, and only what the filter lets pass.
func (r *route) affordable() int {
	return int(int64(r.built) / 4 * int64(r.passed) / int64(r.tried))
}

// measured searches at the level that earlier searches of this kind have shown
// to be enough. As long as they have not, it compares everything and measures
// what the graph would have found.
func (r *route) measured(ctx context.Context, best *ranking) (bool, error) {
	ef := efAt(0, best.k)
	// Not even the luckiest walk would be worth it.
	if int64(ef)*int64(r.v.m)/2*int64(r.tried)/int64(r.passed) > int64(r.affordable()) {
		return false, nil
	}
	if found, err := r.walk(ctx, ef, r.affordable(), best); !found {
		return false, err
	}
	of := kindOf(best, r.accept != nil)
	level, known := r.ix.quality.choose(r.v, of)
	switch {
	case !known:
		return true, r.measure(ctx, of, best)
	case level == 0:
		return true, nil
	case level == scanning:
		return false, nil
	}
	best.clear()
	return r.walk(ctx, efAt(level, best.k), r.affordable(), best)
}

// measure puts the true result in place of what the lowest level has found,
// and notes the recall of the levels.
func (r *route) measure(ctx context.Context, of kind, best *ranking) error {
	truth := newRanking(best.k)
	if err := r.v.scan(ctx, r.row, 0, r.v.built, r.accept, truth); err != nil {
		return err
	}
	s := make(sample, 0, levels)
	for {
		s = append(s, best.recall(truth))
		if s[len(s)-1] >= 1 || len(s) == levels {
			break
		}
		best.clear()
		found, err := r.walk(ctx, efAt(len(s), best.k), r.affordable(), best)
		if err != nil {
			return err
		}
		if !found {
			break
		}
	}
	*best = *truth
	if o := r.ix.options; r.ix.quality.note(r.v, of, s, o.Recall) {
		o.Logger.WarnContext(ctx, "the vectors have no structure that the graph can use for some of the queries, which are compared with all of them: right but slower",
			slog.String("path", r.ix.path), slog.Int("vectors", r.v.live), slog.Float64("recall_of_graph", s[len(s)-1]))
	}
	return nil
}

// try asks the filter about some of the vectors, always the same ones. They
// are scattered: a filter may well have a period.
func (v *view) try(accept func(int64) bool) (passed, tried int) {
	for i := range uint64(trial) {
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

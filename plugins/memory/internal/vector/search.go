package vector

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

const (
	// scanShare is the minimum number of float32 per goroutine of a scan: a smaller
	// share is done faster than a goroutine starts.
	scanShare = 1 << 19
	// walkCost is the cost of a comparison in the graph relative to a scan, which
	// reads memory sequentially and on all cores.
	walkCost = 4
)

// Search returns the k vectors most similar to the query, best first, equally
// similar ones by id; fewer if there are fewer vectors. It sees exactly the
// changes made before it began. With a graph, the result is approximate; see
// Options.EfSearch.
//
// The errors are ErrDimension, ErrNotFinite, ErrClosed and the context's.
func (ix *Index) Search(ctx context.Context, query []float32, k int, options SearchOptions) ([]Hit, error) {
	row, directed, err := normalise(query, ix.options.Dimension)
	if err != nil {
		return nil, fmt.Errorf("search with the query: %w", err)
	}
	target := newTarget(row)
	v, chosen, live, err := ix.selectSlots(options.Among)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	defer v.release()
	best := &ranking{k: min(k, live)}
	if best.k <= 0 {
		return []Hit{}, nil
	}
	from := uint32(0)
	if !options.Exact && directed { // the graph cannot guide a query without direction
		ef := max(cmp.Or(options.Ef, ix.options.EfSearch), best.k)
		found, err := ix.searchGraph(ctx, v, target, ef, chosen, live, best)
		if err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
		if found {
			from = v.built
		} else {
			best.hits = best.hits[:0]
		}
	}
	if err := cmp.Or(v.scan(ctx, target, from, chosen, live, best), v.damaged()); err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	for i := range best.hits {
		best.hits[i].Similarity += 0 // no negative zero
	}
	return best.hits, nil
}

// selectSlots returns a view, which the caller releases, marks the slots of the ids
// unless ids is nil, and counts the vectors to search.
func (ix *Index) selectSlots(ids []int64) (v *view, chosen bitmap, live int, err error) {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	if ix.isClosed {
		return nil, nil, 0, ErrClosed
	}
	v = ix.gen.viewAt(ix.seq)
	v.mark = ix.mark
	if err := v.damaged(); err != nil {
		return nil, nil, 0, err
	}
	v.users.Add(1)
	if ids == nil {
		return v, nil, v.live, nil
	}
	chosen = make(bitmap, len(v.blocks))
	slots := ix.gen.slotOf()
	for _, id := range ids {
		if slot, ok := slots[id]; ok && !chosen.has(slot) {
			chosen[slot>>blockBits] |= 1 << (slot % blockSlots)
			live++
		}
	}
	return v, chosen, live, nil
}

// bitmap marks slots, a word for each block. nil marks all.
type bitmap []uint64

func (b bitmap) has(slot uint32) bool {
	return b == nil || b[slot>>blockBits]>>(slot%blockSlots)&1 != 0
}

// searchGraph offers the results of a search with ef candidates among the slots
// in the graph. It returns false if there is no graph, if a scan of the chosen
// slots is faster, or if it does not find enough.
func (ix *Index) searchGraph(ctx context.Context, v *view, query *target, ef int, chosen bitmap, live int, best *ranking) (bool, error) {
	top, entry, ok := unpackEntry(v.entry.Load())
	// The entry may be a slot that is newer than the view.
	if !ok || v.live <= ix.options.Exact || entry >= v.count {
		return false, nil
	}
	// Only a part of the vectors that a walk compares is chosen.
	compared := int64(ef) * int64(v.m) / 2 * int64(v.live) / int64(live)
	if compared*walkCost > int64(live) {
		return false, nil
	}
	passes := func(slot uint32) bool { return slot < v.built && v.visible(slot) && chosen.has(slot) }
	// The slot or one of its duplicates.
	keep := func(slot uint32) bool {
		for more := true; more; slot, more = v.after(slot) {
			if passes(slot) {
				return true
			}
		}
		return false
	}
	walks, release := ix.borrowWalks(1)
	defer release()
	w := walks[0]
	nearest := w.descend(v, query, entry, top, 0)
	if err := w.layer(ctx, v, query, []item{nearest}, 0, ef, best.k, live/walkCost, keep); err != nil {
		return false, err
	}
	for _, it := range w.found() {
		for slot, more := it.slot, true; more; slot, more = v.after(slot) {
			if passes(slot) {
				v.offer(slot, query, best, &w.row)
			}
		}
	}
	return len(best.hits) == best.k, nil
}

// scan compares the query with the chosen slots, starting at from, on as many
// cores as pay off, and offers them to the ranking.
func (v *view) scan(ctx context.Context, query *target, from uint32, chosen bitmap, live int, best *ranking) error {
	first, last := int(from>>blockBits), len(v.blocks)
	count := min(live, int(v.count-from))
	workers := min(runtime.GOMAXPROCS(0), 1+count*v.stride/scanShare, last-first)
	if workers <= 1 {
		return v.scanBlocks(ctx, query, first, last, from, chosen, best)
	}
	// Several shares per goroutine reduce the delay of a slow one.
	shares := min(workers*4, last-first)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	var mu sync.Mutex
	for i := range shares {
		group.Go(func() error {
			part := &ranking{k: best.k}
			begin, end := first+(last-first)*i/shares, first+(last-first)*(i+1)/shares
			if err := v.scanBlocks(ctx, query, begin, end, from, chosen, part); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			for _, hit := range part.hits {
				best.offer(hit)
			}
			return nil
		})
	}
	return group.Wait()
}

// scanBlocks scans the chosen slots of the blocks from begin to end, exclusive.
func (v *view) scanBlocks(ctx context.Context, query *target, begin, end int, from uint32, chosen bitmap, best *ranking) error {
	var buf []float32
	for n := begin; n < end; n++ {
		if n%16 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		base := uint32(n) << blockBits
		marks := ^uint64(0) >> (blockSlots - min(v.count-base, blockSlots))
		if from > base {
			marks = marks >> (from - base) << (from - base)
		}
		if chosen != nil {
			marks &= chosen[n]
		}
		for ; marks != 0; marks &= marks - 1 {
			if slot := base + uint32(bits.TrailingZeros64(marks)); v.visible(slot) {
				v.offer(slot, query, best, &buf)
			}
		}
	}
	return nil
}

// offer adds the slot to the best if it is among them. The codes show for most
// slots that it is not; the similarity of the others is exact.
func (v *view) offer(slot uint32, query *target, best *ranking, buf *[]float32) {
	if len(best.hits) == best.k && v.compare(slot, query)+v.bound(slot, query) < best.hits[best.k-1].Similarity {
		return
	}
	best.offer(Hit{ID: v.id(slot), Similarity: similarity(v.row(slot, buf), query.row)})
}

// ranking keeps the best k hits, best first.
type ranking struct {
	k    int
	hits []Hit
}

// compareHits orders hits best first: by similarity, then by id.
func compareHits(a, b Hit) int {
	return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), cmp.Compare(a.ID, b.ID))
}

// offer adds the hit if it is among the best.
func (r *ranking) offer(h Hit) {
	full := len(r.hits) == r.k
	if full && (r.k == 0 || h.Similarity < r.hits[r.k-1].Similarity || compareHits(h, r.hits[r.k-1]) >= 0) {
		return
	}
	if full {
		r.hits = r.hits[:r.k-1]
	}
	at, _ := slices.BinarySearchFunc(r.hits, h, compareHits)
	r.hits = slices.Insert(r.hits, at, h)
}

package vector

import (
	"context"
	"math/bits"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// scanShare is how many float32 a goroutine of a scan gets at least: less is
// done sooner than a goroutine starts.
const scanShare = 1 << 19

// bitmap marks slots, a word for each block.
type bitmap []uint64

// choose marks the slots from..to that are visible and accepted, and counts
// them.
func (v *view) choose(ctx context.Context, from, to uint32, accept func(int64) bool) (bitmap, int, error) {
	chosen := make(bitmap, len(v.blocks))
	count := 0
	for slot := from; slot < to; slot++ {
		if slot%1024 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, 0, err
			}
		}
		if v.visible(slot) && accept(v.id(slot)) {
			chosen[slot>>blockBits] |= 1 << (slot % blockSlots)
			count++
		}
	}
	return chosen, count, nil
}

// scan offers the best of the slots from..to to the ranking, comparing the
// query with each of them on as many cores as are worth it.
func (v *view) scan(ctx context.Context, query []float32, from, to uint32, accept func(int64) bool, best *ranking) error {
	if from >= to {
		return nil
	}
	count := int(to - from)
	var chosen bitmap
	if accept != nil {
		var err error
		if chosen, count, err = v.choose(ctx, from, to, accept); err != nil {
			return err
		}
	}
	first, last := int(from>>blockBits), int((to-1)>>blockBits)
	workers := min(runtime.GOMAXPROCS(0), 1+count*v.stride/scanShare, last-first+1)
	if workers == 1 {
		return v.scanBlocks(ctx, query, first, last+1, from, to, chosen, best)
	}
	// Several shares for each goroutine: one that was held up delays less.
	shares := min(workers*4, last-first+1)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	parts := make([]ranking, shares)
	for i := range shares {
		parts[i].k = best.k
		group.Go(func() error {
			begin := first + (last+1-first)*i/shares
			end := first + (last+1-first)*(i+1)/shares
			return v.scanBlocks(ctx, query, begin, end, from, to, chosen, &parts[i])
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, part := range parts {
		for _, hit := range part.hits {
			best.offer(hit)
		}
	}
	return nil
}

// scanBlocks scans the blocks begin..end, as far as they are in from..to and
// chosen, where a choice was made.
func (v *view) scanBlocks(ctx context.Context, query []float32, begin, end int, from, to uint32, chosen bitmap, best *ranking) error {
	for n := begin; n < end; n++ {
		if n%16 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		marks := within(n, from, to)
		if chosen != nil {
			marks &= chosen[n]
		}
		b := v.blocks[n]
		for ; marks != 0; marks &= marks - 1 {
			i := bits.TrailingZeros64(marks)
			if died := b.died[i].Load(); died != 0 && died <= v.seq {
				continue
			}
			s := similarity(b.rows[i*v.stride:(i+1)*v.stride], query)
			if best.beats(s) {
				best.offer(Hit{ID: b.ids[i], Similarity: s})
			}
		}
	}
	return nil
}

// within marks the slots of block n that lie in from..to.
func within(n int, from, to uint32) uint64 {
	base := uint64(n) << blockBits
	marks := ^uint64(0)
	if uint64(from) > base {
		marks <<= uint64(from) - base
	}
	if over := base + blockSlots; over > uint64(to) {
		marks &= ^uint64(0) >> (over - uint64(to))
	}
	return marks
}

package vector

import (
	"context"
	"log/slog"
	"math"
)

// catchUp is how many vectors may be copied while changes wait.
const catchUp = 256

// compact makes a generation without the view's tombstones. Searches and
// changes go on in the old one, which takes its memory until then.
func (ix *Index) compact(ctx context.Context, w *walk, v *view) error {
	next := newGeneration(v.number+1, v.dimension, v.m)
	next.slots = make(map[int64]uint32, v.live)
	moved := make([]uint32, 0, v.count) // where each old slot is now
	const gone = math.MaxUint32         // where no slot is, see add
	copySlots := func(from *view) error {
		for slot := uint32(len(moved)); slot < from.count; slot++ {
			if slot%1024 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if !from.visible(slot) {
				moved = append(moved, gone)
				continue
			}
			to, err := next.add(from.id(slot), from.row(slot))
			if err != nil {
				return err
			}
			next.slots[from.id(slot)] = to
			moved = append(moved, to)
		}
		return nil
	}
	if err := copySlots(v); err != nil {
		return err
	}
	if v.live > ix.options.Exact {
		if err := mend(ctx, w, v, next, moved, ix.options.EfConstruction); err != nil {
			return err
		}
	}
	for {
		newer, err := ix.look()
		if err != nil {
			return err
		}
		if newer.generation != v.generation {
			return nil // it was reset
		}
		if newer.count-uint32(len(moved)) <= catchUp {
			break
		}
		if err := copySlots(newer); err != nil {
			return err
		}
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.gen != v.generation {
		return nil
	}
	last := ix.gen.viewAt(ix.seq)
	if err := copySlots(last); err != nil {
		return err
	}
	inter(last, next, moved)
	ix.gen = next
	ix.options.Logger.DebugContext(ctx, "cleared tombstones from the vector index",
		slog.String("path", ix.path), slog.Int("vectors", len(next.slots)))
	return nil
}

// inter makes the tombstones in the new generation that came about in the old
// one after their slots were copied.
func inter(last *view, next *generation, moved []uint32) {
	for slot, to := range moved {
		slot := uint32(slot)
		if to == math.MaxUint32 || last.visible(slot) {
			continue
		}
		died := last.blocks[slot>>blockBits].died[slot%blockSlots].Load()
		next.blocks[to>>blockBits].died[to%blockSlots].Store(died)
		// Unless the id has a newer vector by now.
		if id := last.id(slot); next.slots[id] == to {
			delete(next.slots, id)
		}
	}
}

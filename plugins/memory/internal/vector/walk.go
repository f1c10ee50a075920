package vector

import (
	"context"
	"slices"
)

// walk is a search in the graph, and the memory it needs. It is used by one
// goroutine at a time, again and again.
type walk struct {
	// seen[slot] == round if the walk has come by the slot.
	seen  []uint32
	round uint32
	// open are the slots whose neighbours have not been looked at, nearest
	// first; best are those found, the least near first.
	open heap
	best heap

	chosen  []item
	left    []item
	crowded []item
	nearest []item
}

// begin forgets what was seen, of so many slots.
func (w *walk) begin(count uint32) {
	if uint32(len(w.seen)) < count {
		// Some more: the index is growing.
		w.seen = make([]uint32, count+count/8+blockSlots)
		w.round = 0
	}
	w.round++
	if w.round == 0 {
		clear(w.seen)
		w.round = 1
	}
}

// descend goes from the entry, in layer top, to the nearest slot it comes to in
// the layer above the given one. It does not go to the slot except.
func (w *walk) descend(v *view, query []float32, entry uint32, top, layer int, except uint32) item {
	at := item{similarity(v.row(entry), query), entry}
	for l := top; l > layer; l-- {
		for moved := true; moved; {
			moved = false
			links := v.links(at.slot, l)
			for i := range links[0].Load() {
				slot := links[1+i].Load()
				if slot >= v.count || slot == except {
					continue
				}
				if s := similarity(v.row(slot), query); s > at.near {
					at, moved = item{s, slot}, true
				}
			}
		}
	}
	return at
}

// layer searches one layer from the given slots and leaves the ef nearest ones
// that keep lets pass in w.best (see heap for their order). It goes on through
// those that keep does not let pass. It returns false when it has compared
// more than the budget.
func (w *walk) layer(ctx context.Context, v *view, query []float32, from []item, layer, ef, budget int, keep func(uint32) bool) (bool, error) {
	w.open, w.best = w.open[:0], w.best[:0]
	for _, it := range from {
		w.seen[it.slot] = w.round
		w.take(it, ef, keep)
	}
	for steps := 1; len(w.open) > 0; steps++ {
		if steps%128 == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		next := w.open.pop()
		if len(w.best) == ef && -next.near < w.best[0].near {
			return true, nil
		}
		links := v.links(next.slot, layer)
		for i := range links[0].Load() {
			slot := links[1+i].Load()
			if slot >= v.count || w.seen[slot] == w.round {
				continue
			}
			w.seen[slot] = w.round
			w.take(item{similarity(v.row(slot), query), slot}, ef, keep)
			budget--
		}
		if budget < 0 {
			return false, nil
		}
	}
	return true, nil
}

// take notes a slot that the walk has come to.
func (w *walk) take(it item, ef int, keep func(uint32) bool) {
	full := len(w.best) == ef
	if full && it.near <= w.best[0].near {
		return
	}
	w.open.push(item{-it.near, it.slot})
	if !keep(it.slot) {
		return
	}
	if full {
		w.best.replace(item{it.near, ^it.slot})
	} else {
		w.best.push(item{it.near, ^it.slot})
	}
}

// found appends what the walk has found, nearest first.
func (w *walk) found(to []item) []item {
	for _, it := range w.best {
		to = append(to, item{it.near, ^it.slot})
	}
	slices.SortFunc(to, nearer)
	return to
}

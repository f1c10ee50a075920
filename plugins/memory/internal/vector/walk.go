package vector

import (
	"context"
	"slices"
)

// item is a slot and how near it is to the query.
type item struct {
	near float32
	slot uint32
}

// nearer orders items nearest first, equally near ones by slot.
func nearer(a, b item) int {
	switch {
	case a == b:
		return 0
	case a.near > b.near || (a.near == b.near && a.slot < b.slot):
		return -1
	}
	return 1
}

// heap has the item with the smallest near first, and among equal ones the item
// with the smallest slot. To get the nearest first, near is negated; to get the
// last slot first among the least near, the bits of the slot are inverted.
type heap []item

func below(a, b item) bool {
	return a.near < b.near || (a.near == b.near && a.slot < b.slot)
}

func (h *heap) push(it item) {
	s := append(*h, it)
	*h = s
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !below(it, s[parent]) {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = it
}

// pop removes the first item.
func (h *heap) pop() item {
	s := *h
	first, last := s[0], s[len(s)-1]
	*h = s[:len(s)-1]
	if len(s) > 1 {
		h.replace(last)
	}
	return first
}

// replace replaces the first item.
func (h heap) replace(it item) {
	i := 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && below(h[child+1], h[child]) {
			child++
		}
		if !below(h[child], it) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = it
}

// walk is a search in the graph and its memory. Only one goroutine may use it at
// a time.
type walk struct {
	// seen[slot] == round if the search has visited the slot.
	seen  []uint32
	round uint32
	// open are the slots whose neighbours were not visited yet, nearest first; best
	// are the found slots, least near first.
	open heap
	best heap
	// top are the k nearest of best, least near first; limit is the least similarity
	// at which the search still continues because of slack.
	top   heap
	limit float32

	row      []float32 // memory for view.row
	chosen   []item
	left     []item
	rejected []item
}

// begin resets the visited slots for a view of count slots.
func (w *walk) begin(count uint32) {
	if uint32(len(w.seen)) < count {
		w.seen = make([]uint32, count+count/8+blockSlots) // with spare room, since the index grows
		w.round = 0
	}
	w.round++
	if w.round == 0 {
		clear(w.seen)
		w.round = 1
	}
}

// descend returns the nearest slot that it finds in the layer above the given
// one, starting from the entry in layer top.
func (w *walk) descend(v *view, query *target, entry uint32, top, layer int) item {
	at := item{v.compare(entry, query), entry}
	for l := top; l > layer; l-- {
		for moved := true; moved; {
			moved = false
			links := v.links(at.slot, l)
			for i := range links[0].Load() {
				slot := links[1+i].Load()
				if slot >= v.count {
					continue
				}
				if s := v.compare(slot, query); s > at.near {
					at, moved = item{s, slot}, true
				}
			}
		}
	}
	return at
}

// A search still visits slots whose squared distance is at most slack times the k-th
// nearest slot's. Among similar vectors these are fewer than ef slots and cost
// nothing. If all vectors are about equally far from the query, ef candidates would
// miss most of the nearest.
const slack = 1.09

// layer searches one layer from the given slots and leaves the ef nearest slots
// that keep accepts in w.best (see heap for their order). It passes through slots
// that keep rejects, and continues as far as slack allows if k is not 0. If it
// has compared more slots than the budget, it stops and leaves w.best empty.
func (w *walk) layer(ctx context.Context, v *view, query *target, from []item, layer, ef, k, budget int, keep func(uint32) bool) error {
	w.begin(v.count)
	w.open, w.best, w.top, w.limit = w.open[:0], w.best[:0], w.top[:0], 2
	if k > 0 {
		w.limit = -2
	}
	for _, it := range from {
		w.seen[it.slot] = w.round
		w.take(it, ef, k, keep)
	}
	for steps := 1; len(w.open) > 0; steps++ {
		if steps%128 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		next := w.open.pop()
		if len(w.best) == ef && -next.near < min(w.best[0].near, w.limit) {
			return nil
		}
		links := v.links(next.slot, layer)
		for i := range links[0].Load() {
			slot := links[1+i].Load()
			if slot >= v.count || w.seen[slot] == w.round {
				continue
			}
			w.seen[slot] = w.round
			w.take(item{v.compare(slot, query), slot}, ef, k, keep)
			budget--
		}
		if budget < 0 {
			w.best = w.best[:0]
			return nil
		}
	}
	return nil
}

// take records a slot that the search has reached.
func (w *walk) take(it item, ef, k int, keep func(uint32) bool) {
	full := len(w.best) == ef
	if full && it.near <= min(w.best[0].near, w.limit) {
		return
	}
	w.open.push(item{-it.near, it.slot})
	if !keep(it.slot) {
		return
	}
	kept := item{it.near, ^it.slot}
	if !full {
		w.best.push(kept)
	} else if it.near > w.best[0].near {
		w.best.replace(kept)
	}
	if k == 0 {
		return
	}
	if len(w.top) < k {
		w.top.push(kept)
	} else if it.near > w.top[0].near {
		w.top.replace(kept)
	}
	if len(w.top) == k {
		w.limit = 1 - float32(slack*(1-w.top[0].near)) // not fused, as in dotPortable
	}
}

// found returns the found slots, nearest first.
func (w *walk) found() []item {
	found := make([]item, len(w.best))
	for i, it := range w.best {
		found[i] = item{it.near, ^it.slot}
	}
	slices.SortFunc(found, nearer)
	return found
}

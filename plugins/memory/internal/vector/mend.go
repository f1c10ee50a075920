package vector

import (
	"context"
	"slices"
	"sync/atomic"
)

// mend gives the new generation the graph of the old one without its
// tombstones. The neighbours of a tombstone take its other neighbours for it,
// as FreshDiskANN does; a vector that lost more than half of its links, or
// that no way leads to any more, is inserted anew.
func mend(ctx context.Context, w *walk, old *view, next *generation, moved []uint32, ef int) error {
	v := next.viewAt(0)
	place := v.placeTwins(old, moved)
	orphans := make([]uint32, 0)
	best := uint64(0)
	built := uint32(0)
	for slot := range old.built {
		if slot%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if moved[slot] < next.count {
			built = moved[slot] + 1
		}
		to := place[slot]
		if to >= next.count || old.isTwin(slot) {
			continue
		}
		level := old.level(slot)
		v.enter(to, level)
		whole := true
		for l := 0; l <= level; l++ {
			kept := w.mendLinks(old, v, slot, l, place)
			whole = whole && kept
		}
		if !whole {
			orphans = append(orphans, to)
		} else if entry := packEntry(level, to); entry>>32 > best>>32 {
			best = entry
		}
	}
	next.built.Store(built)
	if best == 0 {
		// Nothing to hold on to: the graph is built anew.
		next.forgetGraph()
		return nil
	}
	next.entry.Store(best)
	v.built = built
	for _, slot := range orphans {
		if err := w.reinsert(ctx, v, slot, ef); err != nil {
			return err
		}
	}
	// Again for what this has not reached.
	for _, slot := range v.unreached() {
		if err := w.reinsert(ctx, v, slot, ef); err != nil {
			return err
		}
	}
	return nil
}

// placeTwins returns where the links of the old slots go: if there is only a
// twin left, it takes the place. The other twins are hung on.
func (v *view) placeTwins(old *view, moved []uint32) []uint32 {
	place := slices.Clone(moved)
	for slot := range old.built {
		if old.isTwin(slot) {
			continue
		}
		for twin, more := old.after(slot); more; twin, more = old.after(twin) {
			switch {
			case moved[twin] >= v.count: // gone
			case place[slot] >= v.count:
				place[slot] = moved[twin]
			default:
				v.hang(moved[twin], place[slot])
			}
		}
	}
	return place
}

// forgetGraph makes a generation that no search has seen one without a graph.
func (g *generation) forgetGraph() {
	g.built.Store(0)
	g.entry.Store(0)
	clear(g.tails)
	for _, b := range g.blocks {
		b.twins, b.links, b.upper = 0, nil, [blockSlots][]atomic.Uint32{}
		for i := range b.next {
			b.next[i].Store(0)
		}
	}
}

// mendLinks gives the slot in v its links in the old graph. It returns false
// if more than half of them are lost.
func (w *walk) mendLinks(old, v *view, slot uint32, layer int, place []uint32) bool {
	to := place[slot]
	links := old.links(slot, layer)
	n := links[0].Load()
	live, lost := make([]item, 0, n), make([]uint32, 0, n)
	for i := range n {
		if s := links[1+i].Load(); place[s] < v.count {
			live = append(live, item{slot: place[s]})
		} else {
			lost = append(lost, s)
		}
	}
	if len(lost) == 0 {
		setLinks(v.links(to, layer), live)
		return true
	}
	whole := len(lost) <= len(live)
	for _, s := range lost {
		beyond := old.links(s, layer)
		for i := range beyond[0].Load() {
			if s := place[beyond[1+i].Load()]; s < v.count && s != to {
				live = append(live, item{slot: s})
			}
		}
	}
	for i := range live {
		live[i].near = v.similarity(live[i].slot, to)
	}
	slices.SortFunc(live, nearer)
	live = slices.Compact(live)
	setLinks(v.links(to, layer), w.choose(v, live, v.room(layer), v.room(layer)/2))
	return whole
}

// reinsert looks for the neighbours of a slot that has room in the graph.
func (w *walk) reinsert(ctx context.Context, v *view, slot uint32, ef int) error {
	top, entry, _ := unpackEntry(v.entry.Load())
	level := v.level(slot)
	if err := w.connect(ctx, v, slot, level, top, entry, ef); err != nil {
		return err
	}
	if level > top {
		v.entry.Store(packEntry(level, slot))
	}
	return nil
}

// unreached returns the slots of the graph that no way leads to from the entry
// in the lowest layer.
func (v *view) unreached() []uint32 {
	_, entry, ok := unpackEntry(v.entry.Load())
	if !ok {
		return nil
	}
	seen := make([]bool, v.built)
	seen[entry] = true
	for open := []uint32{entry}; len(open) > 0; {
		at := open[len(open)-1]
		open = open[:len(open)-1]
		for twin, more := v.after(at); more; twin, more = v.after(twin) {
			seen[twin] = true
		}
		links := v.links(at, 0)
		for i := range links[0].Load() {
			if s := links[1+i].Load(); s < v.built && !seen[s] {
				seen[s] = true
				open = append(open, s)
			}
		}
	}
	var missing []uint32
	for slot, found := range seen {
		if !found {
			missing = append(missing, uint32(slot))
		}
	}
	return missing
}

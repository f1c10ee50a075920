package vector

import (
	"context"
	"math"
	"slices"
)

// twinEf is how many candidates the search for a twin keeps.
const twinEf = 8

// insert takes the slot into the graph. Only one goroutine may do so; searches
// may go on.
func (w *walk) insert(ctx context.Context, v *view, slot uint32, ef int) error {
	level := levelOf(v.id(slot), v.m)
	top, entry, ok := unpackEntry(v.entry.Load())
	if ok {
		twin, err := w.twin(ctx, v, slot, top, entry)
		if err != nil {
			return err
		}
		if twin.near > sameness {
			v.hang(slot, twin.slot)
			return nil
		}
	}
	v.enter(slot, level)
	if !ok {
		v.entry.Store(packEntry(level, slot))
		return nil
	}
	if err := w.connect(ctx, v, slot, level, top, entry, ef); err != nil {
		return err
	}
	if level > top {
		v.entry.Store(packEntry(level, slot))
	}
	return nil
}

// twin returns the slot in the graph that is nearest to the slot, as far as a
// narrow search can tell. It finds the same vector if there is one.
func (w *walk) twin(ctx context.Context, v *view, slot uint32, top int, entry uint32) (item, error) {
	query := v.row(slot)
	nearest := w.descend(v, query, entry, top, 0, slot)
	if nearest.near > sameness {
		return nearest, nil
	}
	w.begin(v.count)
	all := func(uint32) bool { return true }
	if _, err := w.layer(ctx, v, query, []item{nearest}, 0, twinEf, math.MaxInt, all); err != nil {
		return item{}, err
	}
	w.nearest = w.found(w.nearest[:0])
	return w.nearest[0], nil
}

// connect finds the slot's neighbours in all its layers and links them both
// ways.
func (w *walk) connect(ctx context.Context, v *view, slot uint32, level, top int, entry uint32, ef int) error {
	query := v.row(slot)
	level = min(level, top)
	all := func(uint32) bool { return true }
	from := []item{w.descend(v, query, entry, top, level, slot)}
	for l := level; l >= 0; l-- {
		w.begin(v.count)
		w.seen[slot] = w.round // it may have links already
		if _, err := w.layer(ctx, v, query, from, l, ef, math.MaxInt, all); err != nil {
			return err
		}
		from = w.found(from[:0])
		neighbours := slices.Clone(w.choose(v, from, v.m, v.m/2))
		setLinks(v.links(slot, l), neighbours)
		for _, it := range neighbours {
			w.linkTo(v, it.slot, item{it.near, slot}, l)
		}
	}
	return nil
}

// linkTo adds a neighbour to the slot's, and thins them out when there is no
// room for it.
func (w *walk) linkTo(v *view, slot uint32, neighbour item, layer int) {
	links := v.links(slot, layer)
	n := links[0].Load()
	w.crowded = append(w.crowded[:0], neighbour)
	for i := range n {
		other := links[1+i].Load()
		if other == neighbour.slot {
			return
		}
		w.crowded = append(w.crowded, item{slot: other})
	}
	if int(n) < v.room(layer) {
		links[1+n].Store(neighbour.slot)
		links[0].Store(n + 1)
		return
	}
	row := v.row(slot)
	for i := range w.crowded[1:] {
		w.crowded[1+i].near = similarity(v.row(w.crowded[1+i].slot), row)
	}
	slices.SortFunc(w.crowded, nearer)
	// Not filled up again: with room left, not every further link has to be
	// paid for by thinning out.
	setLinks(links, w.choose(v, w.crowded, v.room(layer), v.room(layer)/2))
}

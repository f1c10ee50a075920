package vector

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// batch adds the slots of a block to the graph on several cores. First each slot
// is compared with the others of the block and searched for in the graph, which
// does not change meanwhile. Then each gets its links, and finally the slots at
// the other ends get the links back. Each step depends on the step before and not
// on the order within it, so the graph is the same on any number of cores.
type batch struct {
	v     *view
	walks []*walk // one for each goroutine
	ef    int

	top   int // the level of the entry
	entry uint32
	begun bool // the graph is not empty

	arrivals []arrival
}

// arrival is a slot of a batch.
type arrival struct {
	slot  uint32
	level int
	// joins is false for a tombstone and for a duplicate, which hangs on the slot on.
	joins     bool
	duplicate bool
	on        uint32
	// near is the approximate similarity to each earlier slot of the batch, the
	// exact one to possible duplicates.
	near []float32
	// found are the candidates in each layer, later the chosen neighbours.
	found [][]item
}

// backlink is a link that leads to a slot of the batch.
type backlink struct {
	layer int
	from  uint32
	to    item
}

// linkable returns the number of slots in complete blocks.
func (g *generation) linkable() uint32 { return g.count &^ (blockSlots - 1) }

// insert adds the slots from v.built to the end of their block to the graph. Only
// one goroutine may call it; searches may continue. If it fails, the graph is
// unchanged.
func (v *view) insert(ctx context.Context, walks []*walk, ef int) error {
	b := &batch{v: v, walks: walks, ef: ef, arrivals: make([]arrival, blockSlots-v.built%blockSlots)}
	b.top, b.entry, b.begun = unpackEntry(v.entry.Load())
	if err := b.each(len(b.arrivals), func(w *walk, i int) error { return b.search(ctx, w, i) }); err != nil {
		return err
	}
	b.enter()
	_ = b.each(len(b.arrivals), b.choose)
	b.linkBack()
	for i := range b.arrivals {
		if a := &b.arrivals[i]; a.joins && (!b.begun || a.level > b.top) {
			b.top, b.begun = a.level, true
			v.entry.Store(packEntry(a.level, a.slot))
		}
	}
	v.generation.built.Store(v.built + uint32(len(b.arrivals)))
	return nil
}

// each calls fn with the numbers below n, on several goroutines.
func (b *batch) each(n int, fn func(w *walk, i int) error) error {
	var next atomic.Int64
	var group errgroup.Group
	for _, w := range b.walks {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return nil
				}
				if err := fn(w, i); err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}

// search finds the candidates of an arrival in the graph, or the slot that it
// duplicates.
func (b *batch) search(ctx context.Context, w *walk, i int) error {
	v, a := b.v, &b.arrivals[i]
	a.slot = v.built + uint32(i)
	if a.joins = v.visible(a.slot); !a.joins {
		return nil
	}
	a.level = levelOf(v.id(a.slot), v.m)
	a.found = make([][]item, a.level+1)
	a.near = make([]float32, i)
	query := v.target(a.slot)
	// nearness is exact where it may be that of a duplicate.
	nearness := func(slot uint32) float32 {
		near := v.compare(slot, query)
		if near+v.bound(slot, query) <= sameness {
			return near
		}
		if query.row == nil {
			query.row = slices.Clone(v.row(a.slot, &w.row))
		}
		return similarity(v.row(slot, &w.row), query.row)
	}
	for j := range a.near {
		a.near[j] = nearness(v.built + uint32(j))
	}
	if !b.begun {
		return nil
	}
	nearest := w.descend(v, query, b.entry, b.top, 0)
	if err := w.layer(ctx, v, query, []item{nearest}, 0, duplicateEf, 0, math.MaxInt, anySlot); err != nil {
		return err
	}
	best := float32(sameness)
	for _, it := range w.found() {
		if near := nearness(it.slot); near > best {
			best, a.duplicate, a.on = near, true, it.slot
		}
	}
	if a.duplicate {
		return nil
	}
	level := min(a.level, b.top)
	from := []item{w.descend(v, query, b.entry, b.top, level)}
	for l := level; l >= 0; l-- {
		if err := w.layer(ctx, v, query, from, l, b.ef, 0, math.MaxInt, anySlot); err != nil {
			return err
		}
		from = w.found()
		a.found[l] = from
	}
	return nil
}

func anySlot(uint32) bool { return true }

// enter links the duplicates and makes room for the links of the others.
func (b *batch) enter() {
	for i := range b.arrivals {
		a := &b.arrivals[i]
		if !a.joins {
			continue
		}
		best := float32(sameness)
		for j, near := range a.near {
			if !a.duplicate && near > best && b.arrivals[j].joins {
				best, a.on = near, b.arrivals[j].slot
			}
		}
		if a.duplicate || best > sameness {
			a.joins = false
			b.v.link(a.slot, a.on)
			continue
		}
		b.v.enter(a.slot, a.level)
	}
}

// choose sets the links of an arrival, to slots of the graph and to earlier ones
// of the batch.
func (b *batch) choose(w *walk, i int) error {
	v, a := b.v, &b.arrivals[i]
	if !a.joins {
		return nil
	}
	for l, candidates := range a.found {
		for j, near := range a.near {
			if mate := &b.arrivals[j]; mate.joins && mate.level >= l {
				candidates = append(candidates, item{near, mate.slot})
			}
		}
		slices.SortFunc(candidates, nearer)
		a.found[l] = slices.Clone(w.choose(v, candidates[:min(len(candidates), b.ef)], v.m, v.m/2))
		setLinks(v.links(a.slot, l), a.found[l])
	}
	return nil
}

// linkBack links the chosen neighbours to the arrivals.
func (b *batch) linkBack() {
	var links []*backlink // pointers: all types share the code that sorts them
	for i := range b.arrivals {
		a := &b.arrivals[i]
		for l := 0; a.joins && l <= a.level; l++ {
			for _, it := range a.found[l] {
				links = append(links, &backlink{layer: l, from: it.slot, to: item{it.near, a.slot}})
			}
		}
	}
	slices.SortFunc(links, func(a, b *backlink) int {
		return cmp.Or(cmp.Compare(a.layer, b.layer), cmp.Compare(a.from, b.from), cmp.Compare(a.to.slot, b.to.slot))
	})
	var begins []int // where the links of each slot and layer begin
	for i, link := range links {
		if i == 0 || link.layer != links[i-1].layer || link.from != links[i-1].from {
			begins = append(begins, i)
		}
	}
	_ = b.each(len(begins), func(w *walk, i int) error {
		end := len(links)
		if i+1 < len(begins) {
			end = begins[i+1]
		}
		w.linkTo(b.v, links[begins[i]:end])
		return nil
	})
}

// linkTo adds links of one slot in one layer, and prunes the slot's neighbours if
// there is no room for them.
func (w *walk) linkTo(v *view, added []*backlink) {
	slot, layer := added[0].from, added[0].layer
	links, limit := v.links(slot, layer), v.maxLinks(layer)
	n := links[0].Load()
	w.rejected = w.rejected[:0]
	for i, link := range added {
		if int(n)+len(added) <= limit {
			links[1+int(n)+i].Store(link.to.slot)
		}
		w.rejected = append(w.rejected, link.to)
	}
	if int(n)+len(added) <= limit {
		links[0].Store(n + uint32(len(added)))
		return
	}
	for i := range n {
		other := links[1+i].Load()
		w.rejected = append(w.rejected, item{v.similarity(other, slot), other})
	}
	slices.SortFunc(w.rejected, nearer)
	setLinks(links, w.choose(v, w.rejected, limit, limit/2))
}

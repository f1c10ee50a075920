package vector

import (
	"math"
	"slices"
	"sync/atomic"
)

const (
	// maxLevel is the highest layer of the graph.
	maxLevel = 31
	// duplicateEf is the number of candidates of the search for a duplicate.
	duplicateEf = 8
	// sameness is the similarity from which two vectors are duplicates: rounding alone
	// causes such a difference.
	sameness = 1 - 1e-6
)

// levelOf returns the highest layer of the id's vector: 0 for most, at least l
// for one in m^l. It depends on the id alone, so that the same changes build the
// same graph, and avoids floating point, which processors might round
// differently.
func levelOf(id int64, m int) int {
	// The finalizer of splitmix64.
	x := uint64(id) + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	level := 0
	for part := math.MaxUint64 / uint64(m); x < part && level < maxLevel; level++ {
		x *= uint64(m) // uniform again
	}
	return level
}

// packEntry packs the slot where searches begin and its level into one word. 0
// means that the graph is empty.
func packEntry(level int, slot uint32) uint64 { return uint64(level+1)<<32 | uint64(slot) }

func unpackEntry(entry uint64) (level int, slot uint32, ok bool) {
	return int(entry>>32) - 1, uint32(entry), entry != 0
}

// maxLinks returns the maximum number of neighbours of a slot in the layer.
func (g *generation) maxLinks(layer int) int {
	if layer == 0 {
		return 2 * g.m
	}
	return g.m
}

// enter makes room for the neighbours of a slot in layers up to the level. No
// link may lead to the slot yet.
func (v *view) enter(slot uint32, level int) {
	b := v.block(slot)
	if b.links == nil {
		b.links = make([]atomic.Uint32, blockSlots*(1+v.maxLinks(0)))
	}
	if level > 0 {
		b.upper[slot%blockSlots] = make([]atomic.Uint32, level*(1+v.m))
	}
}

// links returns the words of the slot's neighbours in the layer: their number,
// then their slots. While the builder changes them, a reader may find a mixture
// of old and new neighbours, each of which is or was a neighbour in this layer.
func (v *view) links(slot uint32, layer int) []atomic.Uint32 {
	b, i := v.block(slot), int(slot%blockSlots)
	if layer == 0 {
		width := 1 + v.maxLinks(0)
		return b.links[i*width : (i+1)*width]
	}
	width := 1 + v.m
	return b.upper[i][(layer-1)*width : layer*width]
}

// level returns the highest layer for which the slot has room.
func (v *view) level(slot uint32) int {
	return len(v.blocks[slot>>blockBits].upper[slot%blockSlots]) / (1 + v.m)
}

// setLinks replaces the neighbours. The count never covers a word that has not
// been a neighbour: it shrinks before and grows after the words are written.
func setLinks(links []atomic.Uint32, slots []item) {
	n := uint32(len(slots))
	if n < links[0].Load() {
		links[0].Store(n)
	}
	for i, it := range slots {
		links[1+i].Store(it.slot)
	}
	links[0].Store(n)
}

// The graph holds one of several equal vectors; the others, its duplicates, form a
// chain that hangs on it. If duplicates were linked like other vectors, many of them
// would only have links to one another.

// link appends the slot to the chain of a slot in the graph. Only the builder
// calls it.
func (v *view) link(slot, on uint32) {
	last, ok := v.tails[on]
	if !ok { // or the file has the chain
		last = on
		for next, more := v.after(on); more; next, more = v.after(next) {
			last = next
		}
	}
	v.tails[on] = slot
	v.block(slot).duplicates |= 1 << (slot % blockSlots)
	v.block(last).next[last%blockSlots].Store(slot + 1)
}

// after returns the next slot in the chain. Slots that are newer than the view
// end it: a chain grows at its end.
func (v *view) after(slot uint32) (uint32, bool) {
	next := v.block(slot).next[slot%blockSlots].Load()
	if next == 0 || next > v.count {
		return 0, false
	}
	return next - 1, true
}

// isDuplicate reports whether the slot hangs on another one. Only the builder calls
// it.
func (v *view) isDuplicate(slot uint32) bool {
	return v.block(slot).duplicates>>(slot%blockSlots)&1 != 0
}

// choose picks at most limit neighbours for a slot from candidates that are
// sorted nearest first. It uses the heuristic of Malkov and Yashunin's algorithm
// 4, which skips a candidate that is nearer to a picked one than to the slot, so
// that the links lead in all directions. If it picks fewer than fill, it adds the
// nearest skipped candidates.
//
// The result is valid until the next call.
func (w *walk) choose(v *view, candidates []item, limit, fill int) []item {
	w.chosen, w.left = w.chosen[:0], w.left[:0]
	for _, c := range candidates {
		if len(w.chosen) == limit {
			break
		}
		near := func(other item) bool { return v.similarity(other.slot, c.slot) > c.near }
		if !slices.ContainsFunc(w.chosen, near) {
			w.chosen = append(w.chosen, c)
		} else if len(w.left) < fill {
			w.left = append(w.left, c)
		}
	}
	if missing := min(fill, limit) - len(w.chosen); missing > 0 {
		w.chosen = append(w.chosen, w.left[:min(missing, len(w.left))]...)
	}
	return w.chosen
}

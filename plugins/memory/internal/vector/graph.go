package vector

import (
	"math"
	"sync/atomic"
)

// maxLevel is the highest layer of the graph.
const maxLevel = 31

// levelOf returns the highest layer that the id's vector is in: 0 for most, at
// least l for one in m^l. It depends on the id alone, so that the same changes
// build the same graph, and needs no floating point, which processors might
// round differently.
func levelOf(id int64, m int) int {
	x := scatter(uint64(id))
	level := 0
	for part := math.MaxUint64 / uint64(m); x < part && level < maxLevel; level++ {
		x *= uint64(m) // uniform again
	}
	return level
}

// scatter is the finalizer of splitmix64.
func scatter(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// packEntry makes one word of the slot where searches begin and its level. 0
// says that the graph is empty.
func packEntry(level int, slot uint32) uint64 { return uint64(level+1)<<32 | uint64(slot) }

func unpackEntry(entry uint64) (level int, slot uint32, ok bool) {
	return int(entry>>32) - 1, uint32(entry), entry != 0
}

// room returns how many neighbours a slot has room for in the layer.
func (g *generation) room(layer int) int {
	if layer == 0 {
		return 2 * g.m
	}
	return g.m
}

// enter makes room for the neighbours of a slot that reaches up to the level.
// No link may lead to the slot before.
func (v *view) enter(slot uint32, level int) {
	b := v.blocks[slot>>blockBits]
	if b.links == nil {
		b.links = make([]atomic.Uint32, blockSlots*(1+v.room(0)))
	}
	if level > 0 {
		b.upper[slot%blockSlots] = make([]atomic.Uint32, level*(1+v.m))
	}
}

// links returns the words of the slot's neighbours in the layer: how many, then
// which.
//
// While the builder changes them, a reader may find a mixture of old and new
// neighbours. Each of them is or was a neighbour in this layer, which is all a
// search relies on: see setLinks.
func (v *view) links(slot uint32, layer int) []atomic.Uint32 {
	b, i := v.blocks[slot>>blockBits], int(slot%blockSlots)
	if layer == 0 {
		width := 1 + v.room(0)
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

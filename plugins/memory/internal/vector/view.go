package vector

import (
	"fmt"
	"math"
	"sync/atomic"
)

// Slots are kept in blocks, so that the index grows without copying.
const (
	blockBits  = 6
	blockSlots = 1 << blockBits
)

// block holds a run of slots.
type block struct {
	rows []float32 // normalised, each of the generation's stride
	ids  [blockSlots]int64
	// deletedAt is the sequence number of the change that deleted or replaced the
	// vector, 0 for none.
	deletedAt [blockSlots]atomic.Int64
	// links are the neighbours in the lowest layer: for each slot their number,
	// then their slots. It is nil until the first slot is added to the graph.
	links []atomic.Uint32
	// upper are the neighbours in the higher layers, layer by layer in the same
	// form, for the few slots in these layers.
	upper [blockSlots][]atomic.Uint32
	// next is the slot of the next duplicate plus one; see link.
	next       [blockSlots]atomic.Uint32
	duplicates uint64 // slots that hang on others; only the builder uses it
}

// generation is a set of slots and the graph over the first of them. Slots are
// only added; removing tombstones makes a new generation.
type generation struct {
	number    int
	dimension int
	stride    int
	m         int

	// Guarded by Index.mu, until the generation is replaced.
	blocks []*block
	count  uint32
	slots  map[int64]uint32 // the slot of each id

	// built is the number of slots in the graph; entry is the start of a search,
	// see packEntry. Only the builder writes them.
	built atomic.Uint32
	entry atomic.Uint64
	tails map[uint32]uint32 // the last duplicate of a slot; only the builder uses it
}

func newGeneration(number, dimension, m int) *generation {
	return &generation{
		number: number, dimension: dimension, stride: strideOf(dimension), m: m,
		slots: make(map[int64]uint32), tails: make(map[uint32]uint32),
	}
}

// add puts the row into a new slot.
func (g *generation) add(id int64, row []float32) (uint32, error) {
	if g.count == math.MaxUint32 {
		return 0, fmt.Errorf("%w: %d vectors and tombstones", ErrFull, g.count)
	}
	slot := g.count
	if slot%blockSlots == 0 {
		g.blocks = append(g.blocks, &block{rows: make([]float32, blockSlots*g.stride)})
	}
	b, i := g.blocks[slot>>blockBits], int(slot%blockSlots)
	copy(b.rows[i*g.stride:], row)
	b.ids[i] = id
	g.count++
	return slot, nil
}

// tombstones returns the number of slots without a live vector.
func (g *generation) tombstones() int { return int(g.count) - len(g.slots) }

// view is the state of a generation after one change. It needs no lock.
type view struct {
	*generation // the graph, dimension and stride
	blocks      []*block
	count       uint32
	built       uint32
	live        int
	seq         int64
	mark        int64
}

// viewAt returns a view of the generation's current state. The caller holds
// Index.mu, or owns the generation.
func (g *generation) viewAt(seq int64) *view {
	return &view{
		generation: g, blocks: g.blocks, count: g.count,
		built: g.built.Load(), live: len(g.slots), seq: seq,
	}
}

func (v *view) row(slot uint32) []float32 {
	i := int(slot%blockSlots) * v.stride
	return v.blocks[slot>>blockBits].rows[i : i+v.stride : i+v.stride]
}

func (v *view) id(slot uint32) int64 {
	return v.blocks[slot>>blockBits].ids[slot%blockSlots]
}

// deletedAt returns the number of the change that made the slot a tombstone, or 0.
func (v *view) deletedAt(slot uint32) int64 {
	return v.blocks[slot>>blockBits].deletedAt[slot%blockSlots].Load()
}

// visible reports whether the slot's vector existed after the view's change.
func (v *view) visible(slot uint32) bool {
	died := v.deletedAt(slot)
	return died == 0 || died > v.seq
}

// compare compares the slot's vector with a query.
func (v *view) compare(slot uint32, query []float32) float32 {
	return similarity(v.row(slot), query)
}

// similarity compares two slots.
func (v *view) similarity(a, b uint32) float32 { return similarity(v.row(a), v.row(b)) }

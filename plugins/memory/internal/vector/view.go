package vector

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// Slots are kept in blocks, so that the index grows without copying.
const (
	blockBits  = 6
	blockSlots = 1 << blockBits
)

// block holds a run of slots. A block of a file gets its links, duplicates and
// codes when it is used first; see generation.block.
type block struct {
	ready atomic.Bool
	once  sync.Once

	ids []int64
	// deletedAt is the sequence number of the change that deleted or replaced the
	// vector, 0 for none.
	deletedAt [blockSlots]atomic.Int64
	// rows are the normalised vectors, each of the generation's stride, nil if they
	// are in the file.
	rows atomic.Pointer[[]float32]
	// codes are the rows as integers, with the results of quantise.
	codes       []int8
	scales, far []float32
	// links are the neighbours in the lowest layer: for each slot their number,
	// then their slots. It is nil until the first slot is added to the graph.
	links []atomic.Uint32
	// upper are the neighbours in the higher layers, layer by layer in the same
	// form, for the few slots in these layers.
	upper [blockSlots][]atomic.Uint32
	// next is the slot of the next duplicate plus one; see link.
	next       []atomic.Uint32
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
	live   int
	slots  map[int64]uint32 // see slotOf
	once   sync.Once

	// built is the number of slots in the graph; entry is the start of a search,
	// see packEntry. Only the builder writes them.
	built atomic.Uint32
	entry atomic.Uint64
	tails map[uint32]uint32 // the last duplicate of a slot, if known; only the builder uses it

	// from is the file with the rows that are not in memory; see read.
	from   atomic.Pointer[contents]
	damage atomic.Pointer[error]
	// users counts the views in use, and the index while the generation is the
	// current one; see release.
	users atomic.Int64
}

func newGeneration(number, dimension, m int) *generation {
	g := &generation{
		number: number, dimension: dimension, stride: strideOf(dimension), m: m, tails: make(map[uint32]uint32),
	}
	g.users.Store(1)
	return g
}

// release is called by each user once. The last one closes the file.
func (g *generation) release() {
	if g.users.Add(-1) > 0 {
		return
	}
	if c := g.from.Load(); c != nil {
		_ = c.file.Close() // it was only read
	}
}

// slotOf returns the slot of each id. The caller holds Index.mu.
func (g *generation) slotOf() map[int64]uint32 {
	g.once.Do(func() {
		g.slots = make(map[int64]uint32, g.live)
		for slot := range g.count {
			if b := g.blocks[slot>>blockBits]; b.deletedAt[slot%blockSlots].Load() == 0 {
				g.slots[b.ids[slot%blockSlots]] = slot
			}
		}
		if len(g.slots) != g.live {
			g.fail(errors.New("an id occurs twice"))
		}
	})
	return g.slots
}

// add puts the row into a new slot.
func (g *generation) add(id int64, row []float32) uint32 {
	slots, slot := g.slotOf(), g.count
	codes := codesOf(g.dimension)
	if slot%blockSlots == 0 {
		b := &block{ids: make([]int64, blockSlots), next: make([]atomic.Uint32, blockSlots), codes: make([]int8, blockSlots*codes)}
		b.scales, b.far = make([]float32, blockSlots), make([]float32, blockSlots)
		rows := make([]float32, blockSlots*g.stride)
		b.rows.Store(&rows)
		b.ready.Store(true)
		g.blocks = append(g.blocks, b)
	}
	b, i := g.blocks[slot>>blockBits], int(slot%blockSlots)
	copy((*b.rows.Load())[i*g.stride:], row)
	b.scales[i], b.far[i] = quantise(row, b.codes[i*codes:][:codes])
	b.ids[i] = id
	g.count++
	g.live++
	slots[id] = slot
	return slot
}

// fail records that a part of the file is damaged. Searches that see the error
// return it instead of their result.
func (g *generation) fail(err error) {
	err = fmt.Errorf("%w: %w", ErrDamaged, err)
	g.damage.CompareAndSwap(nil, &err)
}

// damaged returns the error of fail.
func (g *generation) damaged() error {
	if err := g.damage.Load(); err != nil {
		return *err
	}
	return nil
}

// tombstones returns the number of slots without a live vector.
func (g *generation) tombstones() int { return int(g.count) - g.live }

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
		built: g.built.Load(), live: g.live, seq: seq,
	}
}

// block returns the block of a slot, complete.
func (v *view) block(slot uint32) *block {
	b := v.blocks[slot>>blockBits]
	if !b.ready.Load() {
		v.fetch(b, slot>>blockBits)
	}
	return b
}

// row returns the normalised vector of a slot, possibly in the buffer.
func (v *view) row(slot uint32, buf *[]float32) []float32 {
	b, i := v.blocks[slot>>blockBits], int(slot%blockSlots)
	if rows := b.rows.Load(); rows != nil {
		return (*rows)[i*v.stride:][:v.stride]
	}
	if len(*buf) <= v.stride {
		*buf = make([]float32, v.stride+1)
	}
	if err := v.readRow(slot, *buf); err != nil {
		v.fail(fmt.Errorf("vector %d: %w", slot, err))
		clear(*buf)
	}
	return (*buf)[:v.stride]
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

// target is a vector that others are compared with.
type target struct {
	row        []float32 // nil if only the codes are needed
	codes      []int8
	scale, far float32
}

func newTarget(row []float32) *target {
	t := &target{row: row, codes: make([]int8, codesOf(len(row)))}
	t.scale, t.far = quantise(row, t.codes)
	return t
}

// target returns a slot's vector, without its row.
func (v *view) target(slot uint32) *target {
	b, i, codes := v.block(slot), int(slot%blockSlots), codesOf(v.dimension)
	return &target{codes: b.codes[i*codes:][:codes], scale: b.scales[i], far: b.far[i]}
}

// compare returns the approximate similarity of a slot's vector. It is the same on
// every processor, since the product is a whole number.
func (v *view) compare(slot uint32, t *target) float32 {
	b, i, codes := v.block(slot), int(slot%blockSlots), len(t.codes)
	return float32(float32(dotCodes(b.codes[i*codes:][:codes], t.codes))*b.scales[i]) * t.scale
}

// bound returns how much similarity and compare may differ.
func (v *view) bound(slot uint32, t *target) float32 {
	far := v.block(slot).far[slot%blockSlots]
	return far + t.far*(1+far) + rounding
}

// similarity returns the approximate similarity of two slots.
func (v *view) similarity(a, b uint32) float32 {
	x, y, codes := v.block(a), v.block(b), codesOf(v.dimension)
	i, j := int(a%blockSlots), int(b%blockSlots)
	return float32(float32(dotCodes(x.codes[i*codes:][:codes], y.codes[j*codes:][:codes]))*x.scales[i]) * y.scales[j]
}

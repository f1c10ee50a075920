package vector

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// lengthError is how far the square of a row's length may be from one.
const lengthError = 1e-3

// load reads the companion file.
func load(path string, o Options) (*generation, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%w: not a regular file", ErrCorrupt)
	}
	return read(f, info.Size(), o)
}

// read reads a companion file of the given size. It allocates no more than in
// proportion to the size.
func read(from io.ReaderAt, size int64, o Options) (*generation, int64, error) {
	first := make([]byte, headerSize)
	if n, err := from.ReadAt(first, 0); err != nil && n < headerSize {
		return nil, 0, fmt.Errorf("%w: %d bytes are no header (%v)", ErrCorrupt, n, err)
	}
	h, err := decodeHeader(first, size, o)
	if err != nil {
		return nil, 0, err
	}
	r := &reader{from: from, header: h, layout: h.layout()}
	g := newGeneration(0, o.Dimension, int(h.m))
	if err := r.rows(g); err != nil {
		return nil, 0, err
	}
	if err := r.slots(g); err != nil {
		return nil, 0, err
	}
	if g.m != o.M {
		g.m = o.M // without the graph
		return g, h.watermark, nil
	}
	if err := r.graph(g); err != nil {
		return nil, 0, err
	}
	return g, h.watermark, nil
}

// reader reads the sections of a companion file.
type reader struct {
	from   io.ReaderAt
	header header
	layout layout
}

// section reads so many bytes and checks the sum that follows. The buffer is
// used if it is large enough.
func (r *reader) section(name string, buf []byte, at, size int64) ([]byte, error) {
	if int64(cap(buf)) < size+sumSize {
		buf = make([]byte, size+sumSize)
	}
	buf = buf[:size+sumSize]
	if n, err := r.from.ReadAt(buf, at); n < len(buf) {
		return nil, fmt.Errorf("read its %s: %w", name, err)
	}
	body := buf[:size]
	if crc32.Checksum(body, castagnoli()) != binary.LittleEndian.Uint32(buf[size:]) {
		return nil, fmt.Errorf("%w: checksum of the %s", ErrCorrupt, name)
	}
	return body, nil
}

// rows reads the vectors, with all cores.
func (r *reader) rows(g *generation) error {
	g.count = r.header.slots
	g.blocks = make([]*block, r.header.blocks())
	workers := runtime.GOMAXPROCS(0)
	var group errgroup.Group
	for w := range workers {
		group.Go(func() error {
			var buf []byte
			for n := w; n < len(g.blocks); n += workers {
				count := min(blockSlots, int(g.count)-n*blockSlots)
				b := &block{rows: make([]float32, blockSlots*g.stride)}
				body, err := r.section("vectors", buf, r.layout.rows+int64(n)*r.layout.block, int64(count*g.dimension*4))
				if err != nil {
					return err
				}
				if err := fill(b.rows, body, g); err != nil {
					return err
				}
				g.blocks[n], buf = b, body
			}
			return nil
		})
	}
	return group.Wait()
}

// fill decodes the rows of one block and checks that each has length one, and
// so no element that is no number.
func fill(rows []float32, body []byte, g *generation) error {
	for len(body) > 0 {
		row := rows[:g.dimension]
		bytes := body[:4*len(row)]
		for i := range row {
			row[i] = math.Float32frombits(binary.LittleEndian.Uint32(bytes[4*i:]))
		}
		if length := dot(rows[:g.stride], rows[:g.stride]); !(math.Abs(float64(length)-1) < lengthError) {
			return fmt.Errorf("%w: a vector is not normalised", ErrCorrupt)
		}
		rows, body = rows[g.stride:], body[len(bytes):]
	}
	return nil
}

// slots reads the ids and tombstones.
func (r *reader) slots(g *generation) error {
	ids, err := r.section("ids", nil, r.layout.ids, int64(g.count)*8)
	if err != nil {
		return err
	}
	dead, err := r.section("tombstones", nil, r.layout.dead, int64(len(g.blocks))*8)
	if err != nil {
		return err
	}
	g.slots = make(map[int64]uint32, g.count)
	live := 0
	for slot := range g.count {
		b, i := g.blocks[slot>>blockBits], slot%blockSlots
		b.ids[i] = int64(binary.LittleEndian.Uint64(ids[8*int(slot):]))
		if binary.LittleEndian.Uint64(dead[8*int(slot>>blockBits):])>>i&1 != 0 {
			b.died[i].Store(math.MinInt64) // before every change
			continue
		}
		g.slots[b.ids[i]] = slot
		live++
	}
	if len(g.slots) != live {
		return fmt.Errorf("%w: an id occurs twice", ErrCorrupt)
	}
	return nil
}

// graph reads the links and checks that each leads to a slot that has the
// layer.
func (r *reader) graph(g *generation) error {
	built := r.header.built
	width, room := 1+g.room(0), int64(4)
	lowest, err := r.section("links", nil, r.layout.links, int64(built)*int64(width)*room)
	if err != nil {
		return err
	}
	levels, err := r.section("levels", nil, r.layout.levels, int64(built))
	if err != nil {
		return err
	}
	on, err := r.section("twins", nil, r.layout.twins, int64(built)*room)
	if err != nil {
		return err
	}
	upper, err := r.section("upper links", nil, r.layout.upper, int64(r.header.upper)*room)
	if err != nil {
		return err
	}
	g.built.Store(built)
	v := g.viewAt(r.header.watermark)
	words := uint64(0)
	for slot, level := range levels {
		if level > maxLevel {
			return fmt.Errorf("%w: a vector is in layer %d", ErrCorrupt, level)
		}
		words += uint64(level) * uint64(1+g.m)
		if words > r.header.upper {
			break
		}
		v.enter(uint32(slot), int(level))
	}
	if words != r.header.upper {
		return fmt.Errorf("%w: the layers have %d words instead of %d", ErrCorrupt, r.header.upper, words)
	}
	if err := v.hangAll(on); err != nil {
		return err
	}
	for slot := range built {
		n := int(slot) * width * 4
		if err := v.fillLinks(slot, 0, lowest[n:n+width*4]); err != nil {
			return err
		}
		for l := 1; l <= int(levels[slot]); l++ {
			if err := v.fillLinks(slot, l, upper[:4*(1+g.m)]); err != nil {
				return err
			}
			upper = upper[4*(1+g.m):]
		}
	}
	if level, slot, ok := unpackEntry(r.header.entry); ok && (slot >= built || level != v.level(slot) || v.isTwin(slot)) {
		return fmt.Errorf("%w: a search cannot begin at vector %d", ErrCorrupt, slot)
	}
	g.entry.Store(r.header.entry)
	return nil
}

// hangAll makes the chains of twins.
func (v *view) hangAll(on []byte) error {
	at := func(slot uint32) uint32 { return binary.LittleEndian.Uint32(on[4*int(slot):]) }
	for slot := range v.built {
		to := at(slot)
		if to >= v.built || at(to) != to {
			return fmt.Errorf("%w: vector %d hangs on vector %d", ErrCorrupt, slot, to)
		}
		if to != slot {
			v.hang(slot, to)
		}
	}
	return nil
}

// fillLinks decodes the neighbours of a slot.
func (v *view) fillLinks(slot uint32, layer int, body []byte) error {
	links := v.links(slot, layer)
	n := binary.LittleEndian.Uint32(body)
	if int(n) >= len(links) {
		return fmt.Errorf("%w: vector %d has %d neighbours", ErrCorrupt, slot, n)
	}
	for i := range n {
		other := binary.LittleEndian.Uint32(body[4+4*i:])
		if other >= v.built || v.isTwin(other) || layer > v.level(other) {
			return fmt.Errorf("%w: neighbour %d of vector %d", ErrCorrupt, other, slot)
		}
		links[1+i].Store(other)
	}
	links[0].Store(n)
	return nil
}

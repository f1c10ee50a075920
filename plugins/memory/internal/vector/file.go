package vector

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

// The file is little-endian. After a header with its own checksum come:
//
//	ids      for each slot its id
//	dead     a bitmap of the tombstones, a 64-bit word for each block
//	levels   for each slot in the graph its highest layer, one byte
//	duplicates    for each slot in the graph the slot it hangs on, or its own
//	links    for each slot in the graph the neighbours in the lowest layer: how
//	         many, then room for 2M slots
//	upper    for each slot in higher layers, layer by layer: how many
//	         neighbours, then room for M
//	rows     for each slot its normalised vector
//	sum      the CRC-32C of all that follows the header
//
// The header determines the size of the file, which is checked before anything
// is allocated for it.
const (
	magic         = "tea-vec\n"
	formatVersion = 2
	headerSize    = 128
	sumSize       = 4
	// lengthError bounds the difference between the square of a row's length and
	// one.
	lengthError = 1e-3
)

// errDamaged means that the file is not a complete output of Flush.
var errDamaged = errors.New("the file is damaged")

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// header is the beginning of the file, followed by zeros up to its checksum.
type header struct {
	Magic     [8]byte
	Version   uint32
	Dimension uint32
	M         uint32
	Slots     uint32
	Built     uint32
	Watermark int64
	Entry     uint64
	Upper     uint64 // words of the section
	Owner     [sha256.Size]byte
	Mark      int64 // of the watermark; 0 in files of older versions
}

func (h header) encode() ([]byte, error) {
	b, err := binary.Append(make([]byte, 0, headerSize), binary.LittleEndian, h)
	b = b[:headerSize-sumSize]
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli())), err
}

// decodeHeader reads a header and checks that it agrees with the options and
// the size of the file.
func decodeHeader(b []byte, size int64, o Options) (header, error) {
	var h header
	if _, err := binary.Decode(b, binary.LittleEndian, &h); err != nil {
		return h, err
	}
	switch {
	case string(h.Magic[:]) != magic:
		return h, fmt.Errorf("%w: it is not a vector index", errDamaged)
	case h.Version != formatVersion:
		return h, fmt.Errorf("the file has format %d, this program reads %d", h.Version, formatVersion)
	case crc32.Checksum(b[:headerSize-sumSize], castagnoli()) != binary.LittleEndian.Uint32(b[headerSize-sumSize:]):
		return h, fmt.Errorf("%w: checksum of the header", errDamaged)
	case h.Owner != sha256.Sum256([]byte(o.Owner)):
		return h, fmt.Errorf("the file has another owner than %q", o.Owner)
	case h.Dimension != uint32(o.Dimension):
		return h, fmt.Errorf("the file has dimension %d, not %d", h.Dimension, o.Dimension)
	case h.M < 2 || h.M > maxM || h.Built > h.Slots || h.Upper > uint64(h.Built)*maxLevel*(1+maxM) || h.Watermark < 0 || size != h.size():
		return h, fmt.Errorf("%w: the header does not fit", errDamaged)
	}
	return h, nil
}

func (h header) blocks() int64 { return (int64(h.Slots) + blockSlots - 1) / blockSlots }

// size returns the size of the file.
func (h header) size() int64 {
	slots, built := int64(h.Slots), int64(h.Built)
	return headerSize + slots*8 + h.blocks()*8 + built*(1+4+4*(1+2*int64(h.M))) + int64(h.Upper)*4 + slots*int64(h.Dimension)*4 + sumSize
}

// Flush writes vectors and graph to the file, in their state when it begins; it
// does nothing if the file is up to date. Searches and changes continue
// meanwhile. The file replaces the old one atomically. It is written completely,
// so on flash memory flush rarely: at the end, and when many changes would have
// to be repeated after a crash.
func (ix *Index) Flush() error {
	ix.flushing.Lock()
	defer ix.flushing.Unlock()
	if err := ix.flush(); err != nil {
		return fmt.Errorf("flush the vector index: %w", err)
	}
	return nil
}

func (ix *Index) flush() error {
	ix.linking.Lock() // the graph must not change while it is written
	release := sync.OnceFunc(ix.linking.Unlock)
	defer release()
	v, err := ix.currentView()
	if err != nil {
		return err
	}
	state := savedState{seq: v.seq, built: v.built, generation: v.number}
	ix.mu.RLock()
	saved := ix.saved == state
	ix.mu.RUnlock()
	if saved {
		return nil
	}
	if err := ix.replace(func(to io.Writer) error { return v.save(to, ix.options.Owner, release) }); err != nil {
		return err
	}
	ix.mu.Lock()
	ix.saved = state
	ix.mu.Unlock()
	return nil
}

// replace replaces the file atomically. The temporary file always has the same
// name, so that repeated kills leave at most one such file.
func (ix *Index) replace(write func(io.Writer) error) error {
	temporary := ix.path + ".tmp"
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(temporary) // does nothing after the rename
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary, ix.path); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(ix.path))
}

// writer writes the part of the file that follows the header. It keeps the first
// error.
type writer struct {
	to  *bufio.Writer
	sum uint32
	err error
	buf []byte
}

// flush writes the buffer.
func (w *writer) flush() {
	if w.err == nil {
		w.sum = crc32.Update(w.sum, castagnoli(), w.buf)
		_, w.err = w.to.Write(w.buf)
	}
	w.buf = w.buf[:0]
}

func (w *writer) word(n uint32) { w.buf = binary.LittleEndian.AppendUint32(w.buf, n) }
func (w *writer) long(n uint64) { w.buf = binary.LittleEndian.AppendUint64(w.buf, n) }

func (w *writer) links(words []atomic.Uint32) {
	for i := range words {
		w.word(words[i].Load())
	}
	w.flush()
}

// save writes the view. It calls graphDone when the graph may change again.
func (v *view) save(to io.Writer, owner string, graphDone func()) error {
	h := header{
		Magic: [8]byte([]byte(magic)), Version: formatVersion, Dimension: uint32(v.dimension), M: uint32(v.m), Watermark: v.seq, Mark: v.mark,
		Owner: sha256.Sum256([]byte(owner)), Slots: v.count, Built: v.built, Entry: v.entry.Load(),
	}
	for slot := range v.built {
		h.Upper += uint64(len(v.blocks[slot>>blockBits].upper[slot%blockSlots]))
	}
	w := &writer{to: bufio.NewWriterSize(to, 1<<18)}
	head, err := h.encode()
	if err != nil {
		return err
	}
	_, w.err = w.to.Write(head)
	dead := make([]uint64, len(v.blocks))
	for slot := range v.count {
		w.long(uint64(v.id(slot)))
		if !v.visible(slot) {
			dead[slot>>blockBits] |= 1 << (slot % blockSlots)
		}
	}
	for _, marks := range dead {
		w.long(marks)
	}
	w.flush()
	v.saveGraph(w)
	graphDone()
	for slot := range v.count {
		for _, x := range v.row(slot)[:v.dimension] {
			w.word(math.Float32bits(x))
		}
		w.flush()
	}
	w.word(w.sum)
	if w.flush(); w.err != nil {
		return w.err
	}
	return w.to.Flush()
}

func (v *view) saveGraph(w *writer) {
	on := make([]uint32, v.built)
	for slot := range v.built {
		w.buf = append(w.buf, byte(v.level(slot)))
		if v.isDuplicate(slot) {
			continue
		}
		on[slot] = slot
		for duplicate, more := v.after(slot); more; duplicate, more = v.after(duplicate) {
			on[duplicate] = slot
		}
	}
	for _, slot := range on {
		w.word(slot)
	}
	w.flush()
	blank := make([]atomic.Uint32, 1+v.maxLinks(0))
	for slot := range v.built {
		if v.blocks[slot>>blockBits].links == nil {
			w.links(blank) // all slots of its block were tombstones
		} else {
			w.links(v.links(slot, 0))
		}
	}
	for slot := range v.built {
		w.links(v.blocks[slot>>blockBits].upper[slot%blockSlots])
	}
}

// load reads the file.
func load(path string, o Options) (*generation, header, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, header{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, header{}, err
	}
	// The rows of a block are larger than the buffer and bypass it.
	return read(bufio.NewReaderSize(f, 1<<15), info.Size(), o)
}

// read reads a file of the given size. Its allocations are proportional to the
// size.
func read(from io.Reader, size int64, o Options) (*generation, header, error) {
	r := &reader{from: from}
	first := r.bytes(headerSize)
	if r.err != nil {
		return nil, header{}, r.err
	}
	h, err := decodeHeader(first, size, o)
	if err != nil {
		return nil, header{}, err
	}
	r.sum = 0
	g := newGeneration(0, o.Dimension, int(h.M))
	if err := r.generation(g, h); err != nil {
		return nil, header{}, errors.Join(r.err, err)
	}
	sum := r.sum
	if r.word() != sum || r.err != nil {
		return nil, header{}, errors.Join(r.err, fmt.Errorf("%w: checksum", errDamaged))
	}
	if g.m != o.M { // the graph has to be built again
		g.m, g.entry, g.built, g.tails = o.M, atomic.Uint64{}, atomic.Uint32{}, map[uint32]uint32{}
		for _, b := range g.blocks {
			b.links, b.upper, b.next, b.duplicates = nil, [blockSlots][]atomic.Uint32{}, [blockSlots]atomic.Uint32{}, 0
		}
	}
	return g, h, nil
}

// reader reads the file. It keeps the first error; after it, all reads return
// zeros.
type reader struct {
	from io.Reader
	sum  uint32
	err  error
	buf  []byte
}

// bytes returns the next n bytes, valid until the next call.
func (r *reader) bytes(n int) []byte {
	if cap(r.buf) < n {
		r.buf = make([]byte, n)
	}
	r.fill(r.buf[:n])
	return r.buf[:n]
}

// fill reads the next bytes.
func (r *reader) fill(b []byte) {
	if r.err == nil {
		_, r.err = io.ReadFull(r.from, b)
		r.sum = crc32.Update(r.sum, castagnoli(), b)
	}
	if r.err != nil {
		clear(b)
	}
}

// readWords reads into memory that only the caller uses, without a copy.
func readWords[T float32 | uint32 | atomic.Uint32](r *reader, to []T) {
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(to))), 4*len(to))
	r.fill(b)
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		for i := 0; i < len(b); i += 4 {
			binary.NativeEndian.PutUint32(b[i:], binary.LittleEndian.Uint32(b[i:]))
		}
	}
}

func (r *reader) word() uint32 { return binary.LittleEndian.Uint32(r.bytes(4)) }
func (r *reader) long() uint64 { return binary.LittleEndian.Uint64(r.bytes(8)) }

// generation reads the part after the header.
func (r *reader) generation(g *generation, h header) error {
	g.blocks = make([]*block, h.blocks())
	for n := range g.blocks {
		g.blocks[n] = &block{rows: make([]float32, blockSlots*g.stride)}
	}
	g.count = h.Slots
	g.slots = make(map[int64]uint32, g.count)
	for n, b := range g.blocks {
		ids := r.bytes(8 * min(blockSlots, int(g.count)-n*blockSlots))
		for i := range len(ids) / 8 {
			b.ids[i] = int64(binary.LittleEndian.Uint64(ids[8*i:]))
		}
	}
	live := 0
	for n, b := range g.blocks {
		dead := r.long()
		for i := range min(blockSlots, int(g.count)-n*blockSlots) {
			if dead>>i&1 != 0 {
				b.deletedAt[i].Store(math.MinInt64) // older than every change
				continue
			}
			g.slots[b.ids[i]] = uint32(n*blockSlots + i)
			live++
		}
	}
	if len(g.slots) != live {
		return fmt.Errorf("%w: an id occurs twice", errDamaged)
	}
	g.built.Store(h.Built)
	v := g.viewAt(h.Watermark)
	if err := r.graph(v, h); err != nil {
		return err
	}
	for n, b := range g.blocks {
		slots := min(blockSlots, int(g.count)-n*blockSlots)
		if g.stride == g.dimension {
			readWords(r, b.rows[:slots*g.stride])
		}
		for i := range slots {
			row := b.rows[i*g.stride:][:g.stride]
			if g.stride != g.dimension {
				readWords(r, row[:g.dimension])
			}
			if !(math.Abs(float64(dot(row, row))-1) < lengthError) {
				return fmt.Errorf("%w: vector %d is not normalised", errDamaged, n*blockSlots+i)
			}
		}
	}
	return nil
}

// graph reads the links and checks that each leads to a slot in the layer.
func (r *reader) graph(v *view, h header) error {
	words := uint64(0)
	for slot, level := range r.bytes(int(h.Built)) {
		if words += uint64(level) * uint64(1+v.m); level > maxLevel || words > h.Upper {
			return fmt.Errorf("%w: vector %d is in layer %d", errDamaged, slot, level)
		}
		v.enter(uint32(slot), int(level))
	}
	if words != h.Upper {
		return fmt.Errorf("%w: the layers have %d words instead of %d", errDamaged, words, h.Upper)
	}
	on := make([]uint32, h.Built)
	readWords(r, on)
	for slot, to := range on {
		if to >= h.Built || on[to] != to {
			return fmt.Errorf("%w: vector %d hangs on vector %d", errDamaged, slot, to)
		}
		if to != uint32(slot) {
			v.link(uint32(slot), to)
		}
	}
	for slot := range h.Built {
		if err := r.links(v, on, slot, 0); err != nil {
			return err
		}
	}
	for slot := range h.Built {
		for l := 1; l <= v.level(slot); l++ {
			if err := r.links(v, on, slot, l); err != nil {
				return err
			}
		}
	}
	if level, slot, ok := unpackEntry(h.Entry); ok && (slot >= h.Built || level != v.level(slot) || v.isDuplicate(slot)) {
		return fmt.Errorf("%w: a search cannot begin at vector %d", errDamaged, slot)
	}
	v.entry.Store(h.Entry)
	return nil
}

// links reads the neighbours of a slot. on has, for each slot, the slot it hangs on.
func (r *reader) links(v *view, on []uint32, slot uint32, layer int) error {
	links := v.links(slot, layer)
	readWords(r, links)
	n := links[0].Load()
	if int(n) >= len(links) {
		return fmt.Errorf("%w: vector %d has %d neighbours", errDamaged, slot, n)
	}
	for i := range n {
		other := links[1+i].Load()
		if other >= v.built || on[other] != other || (layer > 0 && layer > v.level(other)) {
			return fmt.Errorf("%w: neighbour %d of vector %d", errDamaged, other, slot)
		}
	}
	return nil
}

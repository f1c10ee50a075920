package vector

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

// The file is little-endian. After a header with its own checksum come:
//
//	ids      for each slot of the blocks its id
//	dead     a bitmap of the tombstones, a 64-bit word for each block
//	upper    for each slot in higher layers of the graph, layer by layer: how many
//	         neighbours, then room for M
//	levels   for each slot in the graph its highest layer, one byte
//	sum      the CRC-32C of these sections
//	blocks   for each block its duplicates, for each slot the next one, links in
//	         the lowest layer (how many neighbours, then room for 2M slots), scale,
//	         distance and codes; and the CRC-32C of the block
//	rows     for each slot its normalised vector and the CRC-32C of it
//
// The header determines the size of the file, which is checked before anything
// is allocated for it. Blocks and rows are read and checked when they are used.
const (
	magic         = "tea-vec\n"
	formatVersion = 3
	headerSize    = 128
	sumSize       = 4
	// lengthError bounds the difference between the square of a row's length and
	// one.
	lengthError = 1e-3
	// keepsFile is false where an open file cannot be replaced: there everything is
	// read at once and kept in memory.
	keepsFile = runtime.GOOS != "windows" && runtime.GOOS != "js"
)

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
		return h, fmt.Errorf("%w: it is not a vector index", ErrDamaged)
	case h.Version != formatVersion:
		return h, fmt.Errorf("the file has format %d, this program reads %d", h.Version, formatVersion)
	case crc32.Checksum(b[:headerSize-sumSize], castagnoli()) != binary.LittleEndian.Uint32(b[headerSize-sumSize:]):
		return h, fmt.Errorf("%w: checksum of the header", ErrDamaged)
	case h.Owner != sha256.Sum256([]byte(o.Owner)):
		return h, fmt.Errorf("the file has another owner than %q", o.Owner)
	case h.Dimension != uint32(o.Dimension):
		return h, fmt.Errorf("the file has dimension %d, not %d", h.Dimension, o.Dimension)
	case h.M < 2 || h.M > maxM || h.Built > h.Slots || h.Upper > uint64(h.Built)*maxLevel*(1+maxM) || h.Watermark < 0 || size != h.size():
		return h, fmt.Errorf("%w: the header does not fit", ErrDamaged)
	}
	return h, nil
}

func (h header) blocks() int64 { return (int64(h.Slots) + blockSlots - 1) / blockSlots }

// The sizes of the sections before and after the first checksum, of a block and of
// a row.
func (h header) frontSize() int64 {
	return h.blocks()*(blockSlots*8+8) + int64(h.Upper)*4 + int64(h.Built) + sumSize
}

func (h header) blockSize() int64 {
	return 8 + blockSlots*(4+4*(1+2*int64(h.M))+4+4+int64(codesOf(int(h.Dimension)))) + sumSize
}

func (h header) rowSize() int64 { return int64(h.Dimension)*4 + sumSize }

// rowsAt returns where the rows begin.
func (h header) rowsAt() int64 { return headerSize + h.frontSize() + h.blocks()*h.blockSize() }

// size returns the size of the file.
func (h header) size() int64 { return h.rowsAt() + int64(h.Slots)*h.rowSize() }

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
	defer v.release()
	state := savedState{seq: v.seq, built: v.built, generation: v.number}
	ix.mu.RLock()
	saved := ix.saved == state
	ix.mu.RUnlock()
	if saved {
		return nil
	}
	var h header
	err = ix.replace(func(to io.Writer) (err error) {
		h, err = v.save(to, ix.options.Owner, release)
		return err
	})
	if err != nil {
		return err
	}
	if keepsFile {
		if f, err := os.Open(ix.path); err == nil {
			v.dropRows(&contents{f, h})
		}
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

// writer writes the file. It keeps the first error.
type writer struct {
	to  *bufio.Writer
	sum uint32 // of what was flushed since the last seal
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

// seal writes the checksum.
func (w *writer) seal() {
	w.flush()
	w.word(w.sum)
	w.flush()
	w.sum = 0
}

func (w *writer) word(n uint32) { w.buf = binary.LittleEndian.AppendUint32(w.buf, n) }
func (w *writer) long(n uint64) { w.buf = binary.LittleEndian.AppendUint64(w.buf, n) }

func (w *writer) zeros(n int) { w.buf = append(w.buf, make([]byte, n)...) }

func (w *writer) floats(row []float32) {
	for _, x := range row {
		w.word(math.Float32bits(x))
	}
}

func (w *writer) words(words []atomic.Uint32) {
	for i := range words {
		w.word(words[i].Load())
	}
}

// save writes the view. It calls graphDone when the graph may change again.
func (v *view) save(to io.Writer, owner string, graphDone func()) (header, error) {
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
		return h, err
	}
	_, w.err = w.to.Write(head)
	v.saveFront(w)
	blank := make([]atomic.Uint32, blockSlots*(1+v.maxLinks(0)))
	for n := range v.blocks {
		b := v.block(uint32(n) << blockBits)
		w.long(b.duplicates)
		w.words(b.next)
		if b.links == nil { // no slot is in the graph, or all were tombstones
			w.words(blank)
		} else {
			w.words(b.links)
		}
		// The slots of later changes are written meanwhile.
		slots := min(blockSlots, int(v.count)-n*blockSlots)
		codes := len(b.codes) / blockSlots
		for _, part := range [][]float32{b.scales, b.far} {
			w.floats(part[:slots])
			w.zeros(4 * (blockSlots - slots))
		}
		for _, c := range b.codes[:slots*codes] {
			w.buf = append(w.buf, byte(c))
		}
		w.zeros((blockSlots - slots) * codes)
		w.seal()
	}
	graphDone()
	var buf []float32
	for slot := range v.count {
		w.floats(v.row(slot, &buf)[:v.dimension])
		w.seal()
	}
	return h, cmp.Or(v.damaged(), w.err, w.to.Flush())
}

func (v *view) saveFront(w *writer) {
	dead := make([]uint64, len(v.blocks))
	for slot := range v.count {
		if !v.visible(slot) {
			dead[slot>>blockBits] |= 1 << (slot % blockSlots)
		}
		w.long(uint64(v.id(slot)))
	}
	w.zeros(8 * (len(v.blocks)*blockSlots - int(v.count)))
	for _, marks := range dead {
		w.long(marks)
	}
	for slot := range v.built {
		w.words(v.blocks[slot>>blockBits].upper[slot%blockSlots])
	}
	for slot := range v.built {
		w.buf = append(w.buf, byte(v.level(slot)))
	}
	w.seal()
}

// contents is a file and its header.
type contents struct {
	file fileReader
	header
}

type fileReader interface {
	io.ReaderAt
	io.Closer
}

// at reads the bytes at the offset.
func (c *contents) at(b []byte, offset int64) error {
	if n, err := c.file.ReadAt(b, offset); n < len(b) {
		return err
	}
	return nil
}

// sealed reads the bytes at the offset and checks the checksum at their end.
func (c *contents) sealed(b []byte, offset int64) error {
	if err := c.at(b, offset); err != nil {
		return err
	}
	data, sum := b[:len(b)-sumSize], b[len(b)-sumSize:]
	if crc32.Checksum(data, castagnoli()) != binary.LittleEndian.Uint32(sum) {
		return errors.New("checksum")
	}
	return nil
}

// dropRows frees the memory of the rows that are in the file, which replaces the
// one before.
func (v *view) dropRows(c *contents) {
	if last := v.from.Swap(c); last != nil {
		defer last.file.Close()
	}
	for _, b := range v.blocks[:v.count/blockSlots] {
		b.rows.Store(nil)
	}
}

// load opens the file.
func load(path string, o Options) (*generation, header, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, header{}, err
	}
	g, h, err := openFile(f, o)
	if err != nil || !keepsFile {
		err = errors.Join(err, f.Close())
	}
	return g, h, err
}

func openFile(f *os.File, o Options) (*generation, header, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, header{}, err
	}
	return read(f, info.Size(), o)
}

// read opens a file of the given size. Its allocations are proportional to the
// size.
func read(from fileReader, size int64, o Options) (*generation, header, error) {
	c := &contents{file: from}
	first := make([]byte, headerSize)
	if err := c.at(first, 0); err != nil {
		return nil, header{}, err
	}
	var err error
	if c.header, err = decodeHeader(first, size, o); err != nil {
		return nil, header{}, err
	}
	g := newGeneration(0, o.Dimension, o.M)
	g.from.Store(c)
	if err := c.readFront(g); err != nil {
		return nil, header{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	v := g.viewAt(c.Watermark)
	for n, b := range g.blocks {
		if keepsFile && (n+1)*blockSlots <= int(g.count) {
			continue
		}
		// The last block, to which more are added.
		rows := make([]float32, blockSlots*g.stride)
		var buf []float32
		for i := range min(blockSlots, int(g.count)-n*blockSlots) {
			copy(rows[i*g.stride:], v.row(uint32(n*blockSlots+i), &buf))
		}
		v.block(uint32(n * blockSlots))
		b.rows.Store(&rows)
	}
	return g, c.header, g.damaged()
}

// words returns the numbers in the bytes, which only the caller uses, without a
// copy. They are aligned.
func words[T float32 | uint32 | atomic.Uint32](b []byte) []T {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		for i := 0; i < len(b); i += 4 {
			binary.NativeEndian.PutUint32(b[i:], binary.LittleEndian.Uint32(b[i:]))
		}
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

// readFront reads all but the blocks and rows, and checks that each link in the
// higher layers leads to a slot in the layer.
func (c *contents) readFront(g *generation) error {
	b := make([]byte, c.frontSize())
	if err := c.sealed(b, headerSize); err != nil {
		return err
	}
	next := func(n int64) []byte {
		part := b[:n:n]
		b = b[n:]
		return part
	}
	ids := make([]int64, c.blocks()*blockSlots)
	for i := range ids {
		ids[i] = int64(binary.LittleEndian.Uint64(next(8)))
	}
	g.blocks = make([]*block, c.blocks())
	g.count = c.Slots
	for n := range g.blocks {
		b := &block{ids: ids[n*blockSlots:][:blockSlots]}
		g.blocks[n] = b
		dead := binary.LittleEndian.Uint64(next(8))
		for i := range min(blockSlots, int(g.count)-n*blockSlots) {
			if dead>>i&1 != 0 {
				b.deletedAt[i].Store(math.MinInt64) // older than every change
			} else {
				g.live++
			}
		}
	}
	upper := words[atomic.Uint32](next(int64(c.Upper) * 4))
	levels := next(int64(c.Built))
	if g.m != int(c.M) {
		return nil // the graph has to be built again
	}
	level, slot, begun := unpackEntry(c.Entry)
	if begun && (slot >= c.Built || level != int(levels[slot])) {
		return fmt.Errorf("a search cannot begin at vector %d", slot)
	}
	g.entry.Store(c.Entry)
	g.built.Store(c.Built)
	width := 1 + g.m
	for slot, level := range levels {
		n := int(level) * width
		if level > maxLevel || n > len(upper) {
			return fmt.Errorf("vector %d is in layer %d", slot, level)
		}
		g.blocks[slot>>blockBits].upper[slot%blockSlots] = upper[:n:n]
		for layer := range int(level) {
			ok := func(other uint32) bool { return other < c.Built && int(levels[other]) > layer }
			if !checkLinks(upper[layer*width:][:width], ok) {
				return fmt.Errorf("the neighbours of vector %d", slot)
			}
		}
		upper = upper[n:]
	}
	if len(upper) > 0 {
		return fmt.Errorf("the layers have %d words too many", len(upper))
	}
	return nil
}

// checkLinks reports whether a slot can have these neighbours.
func checkLinks(links []atomic.Uint32, ok func(uint32) bool) bool {
	n := links[0].Load()
	if int(n) >= len(links) {
		return false
	}
	for i := range n {
		if !ok(links[1+i].Load()) {
			return false
		}
	}
	return true
}

// fetch reads a block.
func (g *generation) fetch(b *block, n uint32) {
	b.once.Do(func() {
		defer b.ready.Store(true)
		c := g.from.Load()
		data := make([]byte, c.blockSize())
		if err := c.sealed(data, headerSize+c.frontSize()+int64(n)*c.blockSize()); err != nil {
			g.fail(fmt.Errorf("block %d: %w", n, err))
			clear(data)
		}
		next := func(n int) []byte {
			part := data[:n:n]
			data = data[n:]
			return part
		}
		duplicates := binary.LittleEndian.Uint64(next(8))
		after, links := words[atomic.Uint32](next(4*blockSlots)), words[atomic.Uint32](next(4*blockSlots*(1+2*int(c.M))))
		b.scales, b.far = words[float32](next(4*blockSlots)), words[float32](next(4*blockSlots))
		codes := next(blockSlots * codesOf(g.dimension))
		b.codes = unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(codes))), len(codes))
		if g.m != int(c.M) {
			b.next = make([]atomic.Uint32, blockSlots)
			return
		}
		b.duplicates, b.next, b.links = duplicates, after, links
		width := 1 + g.maxLinks(0)
		for i := range b.next {
			to := b.next[i].Load()
			if !checkLinks(links[i*width:][:width], func(other uint32) bool { return other < c.Built }) ||
				to != 0 && (to > c.Built || to-1 <= n<<blockBits+uint32(i)) {
				g.fail(fmt.Errorf("the neighbours of vector %d", n<<blockBits+uint32(i)))
				links[i*width].Store(0)
				b.next[i].Store(0)
			}
		}
	})
}

// readRow reads a row as contents.readRow does, again if a flush has closed the file.
func (g *generation) readRow(slot uint32, buf []float32) error {
	for {
		c := g.from.Load()
		if err := c.readRow(slot, buf); err == nil || c == g.from.Load() {
			return err
		}
	}
}

// readRow reads a row and its checksum into the buffer, which is longer than a row.
func (c *contents) readRow(slot uint32, buf []float32) error {
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(buf))), c.rowSize())
	if err := c.sealed(bytes, c.rowsAt()+int64(slot)*c.rowSize()); err != nil {
		return err
	}
	row := words[float32](bytes[:c.rowSize()-sumSize])
	clear(buf[len(row):])
	if buf = buf[:strideOf(len(row))]; !(math.Abs(float64(dot(buf, buf))-1) < lengthError) {
		return errors.New("it is not normalised")
	}
	return nil
}

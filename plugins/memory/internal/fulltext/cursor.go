package fulltext

import (
	"encoding/binary"
	"slices"
	"sort"
)

// A segment stores the postings of a list in blocks of blockDocs documents, each followed by a checksum, so that a
// search reads and decodes only those it needs. A list of several blocks has a directory with an entry for each block:
// its last document, its size, and its impacts (see appendBlock). Lists in memory, short lists, and lists in segments
// before formatBlocks are a single block.

const (
	blockDocs  = 128
	chunkBytes = 64 << 10 // of a list are read at a time
)

// appendBlock appends the entry of a block to a directory. gap is the number of documents from the end of the
// previous block to the end of this one. docs has the documents of the block, packed by impactOf; it is overwritten. The
// impacts are the pairs of length and count that no other pair beats in both, so one of them has the best score of the
// block, whatever the average length is.
func appendBlock(directory []byte, gap uint32, size int, docs []uint64) []byte {
	slices.Sort(docs)
	best := docs[:0]
	most := uint32(0)
	for _, d := range docs {
		if _, tf := splitImpact(d); tf > most {
			best, most = append(best, d), tf
		}
	}
	for _, n := range [...]int{int(gap), size, len(best)} {
		directory = binary.AppendUvarint(directory, uint64(n)) //nolint:gosec // not negative
	}
	var length, tf uint32
	for _, d := range best { // both ascend
		l, n := splitImpact(d)
		directory = binary.AppendUvarint(binary.AppendUvarint(directory, uint64(l-length)), uint64(n-tf))
		length, tf = l, n
	}
	return directory
}

// impactOf packs the length of a document and the count of a form in it. Shorter documents sort first, and
// documents of the same length by descending count.
func impactOf(length, tf uint32) uint64 { return uint64(length)<<32 | uint64(^tf) }

func splitImpact(d uint64) (length, tf uint32) { return uint32(d >> 32), ^uint32(d) }

// takeNumber cuts off the first number of a directory.
func takeNumber(directory []byte) (n uint32, rest []byte) {
	v, size := binary.Uvarint(directory)
	if size <= 0 || v > 1<<32-1 {
		panic(failure{corrupt("a list has an invalid directory")})
	}
	return uint32(v), directory[size:]
}

// docBlock is a block of a cursor's list.
type docBlock struct {
	last    uint32
	size    uint32
	offset  int     // in the list
	impacts int     // in the directory
	bound   float64 // of the scores in the block, see clause.blockBound; 0 if not yet computed
}

// cursor reads the postings of a list in one part. The zero value is not valid.
type cursor struct {
	list
	part      *part
	directory []byte
	blocks    []docBlock // at least one
	loaded    int        // the block in postings, or -1
	postings  []posting
	raw       []byte // bytes of the list, beginning with offset rawFrom
	rawFrom   int
}

// cursor opens a list. The cursor is valid until the scratch is reset.
func (p *part) cursor(l list, mem *scratch) cursor {
	c := cursor{list: l, part: p, loaded: -1}
	if l.dirLen == 0 {
		var data []byte
		if l.term != nil {
			data = l.term.docs
		} else {
			data = l.segment.read(mem.bytes.take(l.docsLen+crcBytes), l.at)
		}
		c.blocks = mem.blocks.take(1)
		c.blocks[0] = docBlock{last: uint32(len(p.ids))}
		c.postings = decodePostings(mem.postings.take(l.df)[:0], data, 0, uint32(len(p.ids)))
		c.loaded = 0
		return c
	}
	c.directory = l.segment.read(mem.bytes.take(l.dirLen+crcBytes), l.at+int64(l.docsLen+l.posLen+2*crcBytes))
	c.blocks = mem.blocks.take((l.df + blockDocs - 1) / blockDocs)
	c.postings = mem.postings.take(blockDocs)[:0]
	c.raw = mem.bytes.take(min(l.docsLen+crcBytes, chunkBytes))[:0]
	c.readDirectory()
	return c
}

func (c *cursor) readDirectory() {
	rest := c.directory
	next, offset := uint32(0), 0
	for i := range c.blocks {
		var gap, size, pairs uint32
		gap, rest = takeNumber(rest)
		size, rest = takeNumber(rest)
		next += gap
		c.blocks[i] = docBlock{last: next - 1, size: size, offset: offset, impacts: len(c.directory) - len(rest)}
		pairs, rest = takeNumber(rest)
		for range 2 * int(pairs) {
			_, rest = takeNumber(rest)
		}
		offset += int(size) + crcBytes
	}
	if len(rest) > 0 || offset != c.docsLen+crcBytes || int(next) > len(c.part.ids) {
		panic(failure{corrupt("a list has an invalid directory")})
	}
}

// first returns the lowest possible document of a block.
func (c *cursor) first(block int) uint32 {
	if block == 0 {
		return 0
	}
	return c.blocks[block-1].last + 1
}

// find returns the block of the first document that is not less than ord; len(blocks) if there is none.
func (c *cursor) find(ord uint32) int {
	i := max(c.loaded, 0)
	if ord < c.first(i) {
		i = 0
	}
	for end := i + 4; i < end; i++ {
		if i == len(c.blocks) || ord <= c.blocks[i].last {
			return i
		}
	}
	return i + sort.Search(len(c.blocks)-i, func(n int) bool { return ord <= c.blocks[i+n].last })
}

// load decodes a block into postings.
func (c *cursor) load(block int) {
	if c.loaded == block {
		return
	}
	b := &c.blocks[block]
	at, size := c.at+int64(b.offset), int(b.size)+crcBytes
	if b.offset < c.rawFrom || b.offset+size > c.rawFrom+len(c.raw) {
		n := max(size, min(cap(c.raw), c.docsLen+crcBytes-b.offset))
		c.raw, c.rawFrom = slices.Grow(c.raw[:0], n)[:n], b.offset
		c.segment.readRaw(c.raw, at)
	}
	data, ok := checked(c.raw[b.offset-c.rawFrom:][:size])
	if !ok {
		panic(failure{c.segment.damaged(at)})
	}
	c.postings, c.loaded = decodePostings(c.postings[:0], data, c.first(block), b.last+1), block
}

// index returns the index in postings of the first document that is not less than ord.
func (c *cursor) index(ord uint32) int {
	low, high := 0, len(c.postings)
	for low < high {
		if mid := (low + high) / 2; c.postings[mid].ord < ord {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// next returns the first posting whose document is not less than ord.
func (c *cursor) next(ord uint32) (p posting, ok bool) {
	for block := c.find(ord); block < len(c.blocks); block++ {
		c.load(block)
		if i := c.index(ord); i < len(c.postings) {
			return c.postings[i], true
		}
	}
	return posting{}, false
}

// tf returns the count of the form in a document.
func (c *cursor) tf(ord uint32) uint32 {
	if p, ok := c.next(ord); ok && p.ord == ord {
		return p.tf
	}
	return 0
}

// all appends the postings of the list.
func (c *cursor) all(out []posting) []posting {
	for block := range c.blocks {
		c.load(block)
		out = append(out, c.postings...)
	}
	return out
}

// scratch is the memory of cursors.
type scratch struct {
	bytes    arena[byte]
	blocks   arena[docBlock]
	postings arena[posting]
}

// reset invalidates all cursors. It keeps part of the memory.
func (s *scratch) reset() {
	s.bytes.reset(1 << 20)
	s.blocks.reset(1 << 15)
	s.postings.reset(1 << 17)
}

// arena lends slices until it is reset.
type arena[T any] struct{ all, free []T }

func (a *arena[T]) take(n int) []T {
	if n > len(a.free) {
		a.all = make([]T, max(n, 2*len(a.all), 256))
		a.free = a.all
	}
	out := a.free[:n:n]
	a.free = a.free[n:]
	return out
}

func (a *arena[T]) reset(keep int) {
	if len(a.all) > keep {
		a.all = nil
	}
	a.free = a.all
}

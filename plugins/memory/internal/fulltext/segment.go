package fulltext

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sort"

	"github.com/the-edge-agent/tea/sdk/x/words"
)

// A segment is an immutable file with a part: the lists in the order of their
// forms, the dictionary (key -> position of the list) in blocks, and the tail.
// A list consists of postings, positions, and the directory of its postings
// (cursor.go). Each of them and each block ends in a checksum; the manifest has
// the checksum and the position of the tail.

// formatBlocks is the format of a segment whose long lists have directories.
const formatBlocks = 1

const (
	blockBytes    = 2 << 10
	maxBlockBytes = 2 * blockBytes
	maxKeyBytes   = 6 * words.MaxBytes
)

// segmentTail is the part of a segment that is read into memory.
type segmentTail struct {
	Keys   []string // the first key of each block
	Blocks []int64  // the offsets of the blocks, and the end of the last one
	IDs    []int64  // ascending
	Lens   []uint32
}

// encode returns the lists, each preceded by its length; ascending numbers are
// stored as differences.
func (t *segmentTail) encode() []byte {
	b := binary.AppendUvarint(nil, uint64(len(t.Keys)))
	for _, key := range t.Keys {
		b = append(binary.AppendUvarint(b, uint64(len(key))), key...)
	}
	for _, list := range [][]int64{t.Blocks, t.IDs} {
		b = binary.AppendUvarint(b, uint64(len(list)))
		last := int64(0)
		for _, n := range list {
			b = binary.AppendVarint(b, n-last)
			last = n
		}
	}
	b = binary.AppendUvarint(b, uint64(len(t.Lens)))
	for _, n := range t.Lens {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

// decode reads the output of encode, and reports whether it is complete.
func (t *segmentTail) decode(b []byte) bool {
	ok := true
	next := func() uint64 {
		n, used := binary.Uvarint(b)
		if used <= 0 {
			ok, used, n = false, 0, 0
		}
		b = b[used:]
		return n
	}
	length := func() int { // each element has at least one byte
		if n := next(); n <= uint64(len(b)) {
			return int(n) //nolint:gosec // bounded
		}
		ok = false
		return 0
	}
	t.Keys = make([]string, length())
	for i := range t.Keys {
		size := length()
		t.Keys[i], b = string(b[:size]), b[size:]
	}
	for _, list := range []*[]int64{&t.Blocks, &t.IDs} {
		*list = make([]int64, length())
		last := int64(0)
		for i := range *list {
			n, used := binary.Varint(b)
			if used <= 0 {
				return false
			}
			b = b[used:]
			last += n
			(*list)[i] = last
		}
	}
	t.Lens = make([]uint32, length())
	for i := range t.Lens {
		t.Lens[i] = uint32(next()) //nolint:gosec // as it was written
	}
	return ok && len(b) == 0
}

// segment is an open segment file.
type segment struct {
	part
	manifestSegment
	file   fileReader
	size   int64
	keys   []string
	blocks []int64

	merging bool
}

type fileReader interface {
	io.ReaderAt
	io.Closer
}

func openSegment(d disk, named manifestSegment, lang *words.Language) (*segment, error) {
	file, size, err := d.open(named.Name)
	if err != nil {
		return nil, fmt.Errorf("open segment %s: %w", named.Name, err)
	}
	s := &segment{manifestSegment: named, file: file, size: size}
	if s.lists = s; s.outdated(lang) {
		s.lists = &restemmed{segment: s, lang: lang}
	}
	if err := s.load(); err != nil {
		file.Close()
		return nil, fmt.Errorf("segment %s: %w", named.Name, err)
	}
	return s, nil
}

func (s *segment) load() error {
	if s.Tail < 0 || s.Tail > s.size {
		return corrupt("it is too short")
	}
	data := make([]byte, s.size-s.Tail)
	if _, err := s.file.ReadAt(data, s.Tail); err != nil && len(data) > 0 {
		return readError(err)
	}
	var tail segmentTail
	if checksum(data) != s.Sum {
		return corrupt("its tail does not match the manifest")
	}
	if !tail.decode(data) {
		return corrupt("its tail cannot be decoded")
	}
	s.keys, s.blocks, s.ids, s.lens, s.ordered = tail.Keys, tail.Blocks, tail.IDs, tail.Lens, true
	dead := s.Dead
	s.Dead = nil
	for ord, n := range s.lens {
		s.live += int64(n)
		if dead.has(uint32(ord)) {
			s.kill(uint32(ord))
		}
	}
	return nil
}

// read fills buf with bytes and the checksum that follows them, and returns the bytes.
func (s *segment) read(buf []byte, at int64) []byte {
	s.readRaw(buf, at)
	data, ok := checked(buf)
	if !ok {
		panic(failure{s.damaged(at)})
	}
	return data
}

func (s *segment) readRaw(buf []byte, at int64) {
	if _, err := s.file.ReadAt(buf, at); err != nil {
		panic(failure{readError(err)})
	}
}

func (s *segment) damaged(at int64) error {
	return corrupt("segment %s has damaged bytes at %d", s.Name, at)
}

// readError reports a file that ends early as corrupt.
func readError(err error) error {
	if errors.Is(err, io.EOF) {
		return corrupt("a file ends early")
	}
	return fmt.Errorf("read the index: %w", err)
}

func (s *segment) find(id int64) (ord uint32, ok bool) {
	i, ok := slices.BinarySearch(s.ids, id)
	return uint32(i), ok
}

func (s *segment) scan(prefix string) iter.Seq[list] {
	return func(yield func(list) bool) {
		first := sort.Search(len(s.keys), func(i int) bool { return s.keys[i] > prefix })
		var buf, key []byte
		for i := max(0, first-1); i < len(s.keys); i++ {
			size := int(s.blocks[i+1] - s.blocks[i])
			buf = slices.Grow(buf[:0], size)[:size]
			data := s.read(buf, s.blocks[i])
			for len(data) > 0 {
				var l list
				key, l, data = readEntry(key, data, s.Format)
				l.segment = s
				switch {
				case prefix == "" && key[0] == stemMark[0]:
					return
				case bytes.HasPrefix(key, []byte(prefix)):
					if l.key = string(key); !yield(l) {
						return
					}
				case string(key) > prefix:
					return
				}
			}
		}
	}
}

// appendEntry appends an entry of a block. shared is the number of bytes that its key has
// in common with the key before it.
func appendEntry(b []byte, shared int, l list) []byte {
	for _, n := range [...]uint64{uint64(shared), uint64(len(l.key) - shared), uint64(l.df), uint64(l.at), uint64(l.docsLen), uint64(l.posLen)} {
		b = binary.AppendUvarint(b, n)
	}
	if l.df > blockDocs {
		b = binary.AppendUvarint(b, uint64(l.dirLen))
	}
	return append(b, l.key[shared:]...)
}

func sharedBytes(a, b string) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func readEntry(before, data []byte, format int) (key []byte, l list, rest []byte) {
	var n [7]uint64
	for i := range n {
		if i == 6 && (format < formatBlocks || n[2] <= blockDocs) {
			break
		}
		size := 1
		if len(data) > 0 && data[0] < 0x80 { // faster than Uvarint, since most numbers are small
			n[i] = uint64(data[0])
		} else if n[i], size = binary.Uvarint(data); size <= 0 {
			panic(failure{corrupt("a dictionary has an invalid entry")})
		}
		data = data[size:]
	}
	shared, more := n[0], n[1]
	if shared > uint64(len(before)) || more > uint64(len(data)) {
		panic(failure{corrupt("a dictionary has an invalid key")})
	}
	before = append(before[:shared], data[:more]...)
	return before, list{df: int(n[2]), at: int64(n[3]), docsLen: int(n[4]), posLen: int(n[5]), dirLen: int(n[6])}, data[more:]
}

// segmentWriter writes a segment file: post and add for each form in ascending
// order, then finish.
type segmentWriter struct {
	w       *bufio.Writer
	offset  int64
	lang    *words.Language
	tail    segmentTail
	stems   stems
	spooled []byte // the dictionary, which comes after the lists and is much smaller
	block   []byte
	last    string

	// The documents of the next form.
	docs, pos, directory []byte
	begin                int      // of the current block in docs
	first                uint32   // the lowest possible document of the block
	impacts              []uint64 // of the block
	next                 uint32
	df                   int
}

func newSegmentWriter(w io.Writer, lang *words.Language, ids []int64, lens []uint32) *segmentWriter {
	return &segmentWriter{w: bufio.NewWriterSize(w, 256<<10), lang: lang, tail: segmentTail{IDs: ids, Lens: lens, Blocks: []int64{0}}}
}

// write writes bytes. The first error is returned by finish.
func (s *segmentWriter) write(b []byte) {
	_, _ = s.w.Write(b)
	s.offset += int64(len(b))
}

// post adds a document of the next form; its ord is greater than the previous
// ones. positions are in encoded form.
func (s *segmentWriter) post(p posting, positions []byte) {
	s.docs = appendPosting(s.docs, s.next, p)
	s.pos = append(s.pos, positions...)
	s.impacts = append(s.impacts, impactOf(s.tail.Lens[p.ord], p.tf))
	s.next = p.ord + 1
	if s.df++; s.df%blockDocs == 0 {
		s.endDocs()
	}
}

// endDocs ends a block of postings.
func (s *segmentWriter) endDocs() {
	block := s.docs[s.begin:]
	s.directory = appendBlock(s.directory, s.next-s.first, len(block), s.impacts)
	s.docs = binary.LittleEndian.AppendUint32(s.docs, checksum(block))
	s.begin, s.first, s.impacts = len(s.docs), s.next, s.impacts[:0]
}

// add adds a form with the documents that were posted, if there are any.
func (s *segmentWriter) add(form string) {
	if s.df == 0 {
		return
	}
	if len(s.impacts) > 0 {
		s.endDocs()
	}
	l := list{key: form, df: s.df, at: s.offset, docsLen: len(s.docs) - crcBytes, posLen: len(s.pos)}
	s.write(s.docs)
	s.write(appendChecksum(s.pos))
	if s.df > blockDocs {
		l.dirLen = len(s.directory)
		s.write(appendChecksum(s.directory))
	}
	s.docs, s.pos, s.directory, s.begin, s.first, s.next, s.df = s.docs[:0], s.pos[:0], s.directory[:0], 0, 0, 0, 0
	s.enter(l)
	for _, stem := range s.lang.Keys(form) {
		if stem != "" {
			l.key = stemKey(stem, form)
			s.stems.add(l)
		}
	}
}

func (s *segmentWriter) enter(l list) {
	shared := 0
	if len(s.block) == 0 {
		s.tail.Keys = append(s.tail.Keys, l.key)
	} else {
		shared = sharedBytes(s.last, l.key)
	}
	s.block = appendEntry(s.block, shared, l)
	if s.last = l.key; len(s.block) >= blockBytes {
		s.endBlock()
	}
}

func (s *segmentWriter) endBlock() {
	s.spooled = append(s.spooled, appendChecksum(s.block)...)
	s.tail.Blocks = append(s.tail.Blocks, int64(len(s.spooled)))
	s.block = s.block[:0]
}

// finish writes the rest. It returns the position of the tail and its checksum.
func (s *segmentWriter) finish() (tail int64, sum uint32, err error) {
	s.stems.each(s.enter)
	if len(s.block) > 0 {
		s.endBlock()
	}
	for i := range s.tail.Blocks {
		s.tail.Blocks[i] += s.offset
	}
	s.write(s.spooled)
	encoded := s.tail.encode()
	tail = s.offset
	s.write(encoded)
	return tail, checksum(encoded), s.w.Flush()
}

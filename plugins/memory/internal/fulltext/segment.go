package fulltext

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
)

// A segment file holds a part: the lists, the table of forms (form -> where
// its list is), the table of stems (stem, zero byte, form; only of forms that
// are not their own stem), the indexes of both tables, the documents' IDs and
// lengths in the order of the IDs, and a footer with the offsets. Everything
// has a checksum; the manifest has the footer's.
const (
	segmentMagic   = "tea-fts\n"
	segmentVersion = 1
	headerBytes    = len(segmentMagic) + 4
	footerFields   = 8
	footerBytes    = footerFields*8 + crcBytes
	docBytes       = 12
	maxSegmentDocs = 1 << 30
)

// footer is the end of a segment file: offsets and sizes.
type footer struct {
	docs       uint64 // how many
	tokens     uint64 // the sum of their lengths
	forms      uint64 // where the table begins, which is where the lists end
	stems      uint64
	formsIndex uint64
	stemsIndex uint64
	docTable   uint64
	end        uint64 // where the footer begins
}

func (f *footer) fields() [footerFields]*uint64 {
	return [...]*uint64{&f.docs, &f.tokens, &f.forms, &f.stems, &f.formsIndex, &f.stemsIndex, &f.docTable, &f.end}
}

// valid tells whether the footer fits a file of that size.
func (f *footer) valid(size int64) bool {
	fields := f.fields()
	for _, place := range fields[2:] {
		if *place > uint64(size) { // before any sum of them can overflow
			return false
		}
	}
	return size >= int64(headerBytes+footerBytes) && f.end == uint64(size)-uint64(footerBytes) &&
		uint64(headerBytes) <= f.forms && f.forms <= f.stems && f.stems <= f.formsIndex &&
		f.formsIndex+crcBytes <= f.stemsIndex && f.stemsIndex+crcBytes <= f.docTable && f.docTable+crcBytes <= f.end &&
		f.docs > 0 && f.docs <= maxSegmentDocs && f.end-f.docTable == f.docs*docBytes+crcBytes
}

// list says where the list of a form is. A list of the part in memory is its
// own bytes.
type list struct {
	form            string
	df              int
	offset          int64
	docsLen, posLen int
	memory          *listBytes
}

// listBytes is a list of the part in memory.
type listBytes struct{ docs, pos []byte }

// segment is an immutable part on disk. It is read by ReadAt; in memory are
// the documents' IDs and lengths and the sparse indexes of the tables.
type segment struct {
	name   string
	file   fileReader
	size   int64
	sum    uint32 // of the footer
	trust  bool
	lists  int64 // where the lists end
	forms  *table
	stems  *table
	ids    []int64
	lens   []uint32
	tokens int64

	refs    atomic.Int32
	dropped atomic.Bool
	drop    func() // removes the file
}

// fileReader is an open file.
type fileReader interface {
	io.ReaderAt
	io.Closer
}

// openSegment reads what is kept in memory. It owns the file from now on and
// closes it if it fails.
func openSegment(name string, file fileReader, size int64, trust bool) (_ *segment, err error) {
	defer func() {
		if err != nil {
			file.Close()
			err = fmt.Errorf("segment %s: %w", name, err)
		}
	}()
	if size < int64(headerBytes+footerBytes) {
		return nil, corrupt("it is too short")
	}
	head := make([]byte, headerBytes)
	if _, err := file.ReadAt(head, 0); err != nil {
		return nil, readError(err)
	}
	if string(head[:len(segmentMagic)]) != segmentMagic {
		return nil, corrupt("it does not begin like one")
	}
	if v := binary.LittleEndian.Uint32(head[len(segmentMagic):]); v != segmentVersion {
		return nil, corrupt("it has format %d, this program reads %d", v, segmentVersion)
	}
	tail := make([]byte, footerBytes)
	if _, err := file.ReadAt(tail, size-int64(footerBytes)); err != nil {
		return nil, readError(err)
	}
	fields, ok := checked(tail, trust)
	if !ok {
		return nil, corrupt("its footer is broken")
	}
	var f footer
	for i, field := range f.fields() {
		*field = binary.LittleEndian.Uint64(fields[i*8:])
	}
	if !f.valid(size) {
		return nil, corrupt("its footer names impossible places")
	}
	s := &segment{
		name: name, file: file, size: size, trust: trust, lists: int64(f.forms),
		sum: binary.LittleEndian.Uint32(tail[len(fields):]), tokens: int64(f.tokens),
	}
	s.refs.Store(1)
	return s, s.load(f)
}

// load reads the indexes and the documents.
func (s *segment) load(f footer) error {
	region := func(from, to uint64) ([]byte, error) {
		return s.read(nil, int64(from), int(to-from))
	}
	index, err := region(f.formsIndex, f.stemsIndex)
	if err != nil {
		return err
	}
	var ok bool
	if s.forms, ok = newTable(s.file, index, int64(f.forms), int64(f.stems), s.trust); !ok {
		return corrupt("its index of forms is broken")
	}
	if index, err = region(f.stemsIndex, f.docTable); err != nil {
		return err
	}
	if s.stems, ok = newTable(s.file, index, int64(f.stems), int64(f.formsIndex), s.trust); !ok {
		return corrupt("its index of stems is broken")
	}
	docs, err := region(f.docTable, f.end)
	if err != nil {
		return err
	}
	n := int(f.docs)
	s.ids, s.lens = make([]int64, n), make([]uint32, n)
	tokens := uint64(0)
	for i := range s.ids {
		s.ids[i] = int64(binary.LittleEndian.Uint64(docs[i*8:]))
		s.lens[i] = binary.LittleEndian.Uint32(docs[n*8+i*4:])
		tokens += uint64(s.lens[i])
		if i > 0 && s.ids[i-1] >= s.ids[i] {
			return corrupt("its documents are out of order")
		}
	}
	if tokens != f.tokens {
		return corrupt("its documents' lengths do not add up")
	}
	return nil
}

// read reads bytes that end in a checksum, into buf if it is large enough.
func (s *segment) read(buf []byte, offset int64, size int) ([]byte, error) {
	buf = slices.Grow(buf[:0], size)[:size]
	if _, err := s.file.ReadAt(buf, offset); err != nil {
		return nil, readError(err)
	}
	data, ok := checked(buf, s.trust)
	if !ok {
		return nil, corrupt("segment %s has broken bytes at %d", s.name, offset)
	}
	return data, nil
}

// readError says that a file which ends early is corrupt.
func readError(err error) error {
	if errors.Is(err, io.EOF) {
		return corrupt("a file ends early")
	}
	return fmt.Errorf("read the index: %w", err)
}

// listOf reads a value of the table of forms.
func (s *segment) listOf(form string, value []byte) (list, error) {
	var v [4]uint64
	for i := range v {
		var n int
		if v[i], n = binary.Uvarint(value); n <= 0 {
			return list{}, corrupt("segment %s has a broken entry", s.name)
		}
		value = value[n:]
	}
	room := uint64(s.lists)
	if v[0] > uint64(len(s.ids)) || v[1] > room || v[2] > room || v[3] > room || v[1]+v[2]+v[3]+2*crcBytes > room {
		return list{}, corrupt("segment %s has an impossible entry", s.name)
	}
	return list{form: form, df: int(v[0]), offset: int64(v[1]), docsLen: int(v[2]), posLen: int(v[3])}, nil
}

// wordLists returns the lists of the forms that share a key with the word.
func (s *segment) wordLists(word keys, lang *language) (out []list, err error) {
	for i, key := range word {
		if key == "" {
			continue
		}
		forms, err := s.formsOf(key, lang)
		if err != nil {
			return nil, err
		}
		for _, form := range forms {
			if i > 0 && lang.keys(form).has(word[0]) {
				continue
			}
			if err := s.appendList(&out, form); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// formsOf returns the forms that have the key.
func (s *segment) formsOf(key string, lang *language) (forms []string, err error) {
	if lang.keys(key).has(key) {
		forms = append(forms, key)
	}
	prefix := key + "\x00"
	c := s.stems.seek(prefix)
	for c.next() {
		form, ok := strings.CutPrefix(string(c.key), prefix)
		if ok {
			forms = append(forms, form)
		} else if string(c.key) > prefix {
			break
		}
	}
	return forms, c.err
}

func (s *segment) appendList(out *[]list, form string) error {
	value, ok, err := s.forms.find(form)
	if err != nil || !ok {
		return err
	}
	l, err := s.listOf(form, value)
	*out = append(*out, l)
	return err
}

// prefixLists returns the first n lists, by form, of the forms that begin with
// the prefix and come after the given one.
func (s *segment) prefixLists(prefix, after string, n int) ([]list, error) {
	var out []list
	c := s.forms.seek(max(prefix, after))
	for len(out) < n && c.next() {
		form := string(c.key)
		switch {
		case strings.HasPrefix(form, prefix) && form > after:
			l, err := s.listOf(form, c.value)
			if err != nil {
				return nil, err
			}
			out = append(out, l)
		case form > prefix && !strings.HasPrefix(form, prefix):
			return out, nil
		}
	}
	return out, c.err
}

// readDocs returns the bytes of a list's postings.
func (s *segment) readDocs(l list, buf []byte) ([]byte, error) {
	return s.read(buf, l.offset, l.docsLen+crcBytes)
}

// readPositions returns the bytes of a list's positions.
func (s *segment) readPositions(l list, buf []byte) ([]byte, error) {
	return s.read(buf, l.offset+int64(l.docsLen)+crcBytes, l.posLen+crcBytes)
}

// find returns the number of the document with that ID.
func (s *segment) find(id int64) (ord uint32, ok bool) {
	i, ok := slices.BinarySearch(s.ids, id)
	return uint32(i), ok
}

// release gives a reference back. The last one closes the file, and removes it
// if the segment was dropped.
func (s *segment) release() {
	if s.refs.Add(-1) > 0 {
		return
	}
	s.file.Close()
	if s.dropped.Load() && s.drop != nil {
		s.drop()
	}
}

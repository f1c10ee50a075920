package fulltext

import (
	"bufio"
	"encoding/binary"
	"io"
	"slices"
	"strings"
)

// segmentWriter writes a segment file: begin, then add and end for each form
// in ascending order, then finish.
type segmentWriter struct {
	w      *bufio.Writer
	offset int64
	ids    []int64
	lens   []uint32

	docs, pos []byte // of the form in hand
	next      uint32
	df        uint64

	forms      tableWriter
	formBlocks spool
	stems      []formOf
	err        error
}

// formOf names a form that is not its own key.
type formOf struct{ key, form string }

// spool keeps the table of forms until the lists are written: it comes after
// them in the file, and is a twentieth of their size.
type spool struct{ data []byte }

func (s *spool) Write(p []byte) (int, error) {
	s.data = append(s.data, p...)
	return len(p), nil
}

// newSegmentWriter begins a segment with these documents, the IDs ascending.
func newSegmentWriter(w io.Writer, ids []int64, lens []uint32) *segmentWriter {
	s := &segmentWriter{w: bufio.NewWriterSize(w, 256<<10), ids: ids, lens: lens}
	s.forms.w = &s.formBlocks
	s.write(binary.LittleEndian.AppendUint32([]byte(segmentMagic), segmentVersion))
	return s
}

func (s *segmentWriter) write(b []byte) {
	if s.err == nil {
		_, s.err = s.w.Write(b)
	}
	s.offset += int64(len(b))
}

// add adds a document to the form in hand; the ords ascend. The positions are
// the bytes as they stand in a list.
func (s *segmentWriter) add(p posting, positions []byte) {
	s.docs = appendPosting(s.docs, s.next, p)
	s.pos = append(s.pos, positions...)
	s.next = p.ord + 1
	s.df++
}

// end ends the form in hand. One that no document has leaves no trace.
func (s *segmentWriter) end(form string, found keys) error {
	if s.df == 0 {
		return s.err
	}
	value := make([]byte, 0, 4*binary.MaxVarintLen32)
	for _, v := range []uint64{s.df, uint64(s.offset), uint64(len(s.docs)), uint64(len(s.pos))} {
		value = binary.AppendUvarint(value, v)
	}
	s.docs, s.pos = appendChecksum(s.docs), appendChecksum(s.pos)
	s.write(s.docs)
	s.write(s.pos)
	s.docs, s.pos, s.next, s.df = s.docs[:0], s.pos[:0], 0, 0
	if err := s.forms.add(form, value); err != nil {
		return err
	}
	for _, key := range found {
		if key != "" && key != form {
			s.stems = append(s.stems, formOf{key, form})
		}
	}
	return s.err
}

// finish writes the rest.
func (s *segmentWriter) finish() error {
	f := footer{docs: uint64(len(s.ids)), forms: uint64(s.offset)}
	if err := s.forms.flush(); err != nil {
		return err
	}
	s.write(s.formBlocks.data)
	f.stems = uint64(s.offset)
	slices.SortFunc(s.stems, func(a, b formOf) int {
		if c := strings.Compare(a.key, b.key); c != 0 {
			return c
		}
		return strings.Compare(a.form, b.form)
	})
	stems := tableWriter{w: s.w}
	for _, pair := range s.stems {
		if err := stems.add(pair.key+"\x00"+pair.form, nil); err != nil {
			return err
		}
	}
	if err := stems.flush(); err != nil {
		return err
	}
	s.offset += stems.size
	f.formsIndex = uint64(s.offset)
	s.write(appendChecksum(s.forms.index))
	f.stemsIndex = uint64(s.offset)
	s.write(appendChecksum(stems.index))
	f.docTable = uint64(s.offset)
	docs := make([]byte, 0, len(s.ids)*docBytes+crcBytes)
	for _, id := range s.ids {
		docs = binary.LittleEndian.AppendUint64(docs, uint64(id))
	}
	for _, n := range s.lens {
		docs = binary.LittleEndian.AppendUint32(docs, n)
		f.tokens += uint64(n)
	}
	s.write(appendChecksum(docs))
	f.end = uint64(s.offset)
	var tail []byte
	for _, field := range f.fields() {
		tail = binary.LittleEndian.AppendUint64(tail, *field)
	}
	s.write(appendChecksum(tail))
	if s.err != nil {
		return s.err
	}
	return s.w.Flush()
}

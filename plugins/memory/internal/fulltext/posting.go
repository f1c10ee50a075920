package fulltext

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
)

// ErrCorrupt reports that a file of the index is damaged. Searches fail until the owner calls [Index.Reset] and replays
// all changes.
var ErrCorrupt = errors.New("the full-text index is corrupt")

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
}

// failure is the panic value of code that reads lists. Searches and writers of
// segments return its error.
type failure struct{ error }

func catch(err *error) {
	switch p := recover().(type) {
	case nil:
	case failure:
		*err = p.error
	default:
		panic(p)
	}
}

// checksum builds the table at the first use rather than when the process starts.
func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

const crcBytes = 4

func appendChecksum(b []byte) []byte { return binary.LittleEndian.AppendUint32(b, checksum(b)) }

// checked removes the checksum from data. It returns false if the checksum does
// not match.
func checked(data []byte) ([]byte, bool) {
	if len(data) < crcBytes {
		return nil, false
	}
	body := data[:len(data)-crcBytes]
	return body, checksum(body) == binary.LittleEndian.Uint32(data[len(body):])
}

// posting is a document that contains a form, and the number of occurrences. A
// document's ord is its number in its part.
type posting struct {
	ord, tf uint32
}

// A list of postings is a string of varints: the gap to the document before,
// doubled, plus one if the form occurs once; otherwise the count follows.
// Positions are stored separately, so that a search without phrases does not
// read them: for each document the first position, then the gaps.

func appendPosting(list []byte, next uint32, p posting) []byte {
	gap := uint64(p.ord-next) << 1
	if p.tf == 1 {
		return binary.AppendUvarint(list, gap|1)
	}
	return binary.AppendUvarint(binary.AppendUvarint(list, gap), uint64(p.tf))
}

// decodePostings appends the postings of a list or a block, whose documents are
// at least first and less than end.
func decodePostings(out []posting, list []byte, first, end uint32) []posting {
	next := uint64(first)
	for i := 0; i < len(list); {
		v, n := uint64(list[i]), 1
		if v >= 0x80 { // most values take one byte, but two are not rare
			if i+1 < len(list) && list[i+1] < 0x80 {
				v, n = v&0x7F|uint64(list[i+1])<<7, 2
			} else if v, n = binary.Uvarint(list[i:]); n <= 0 {
				panic(failure{corrupt("a list has an invalid number")})
			}
		}
		i += n
		tf := uint64(1)
		if v&1 == 0 {
			if n = 1; i < len(list) && list[i] < 0x80 {
				tf = uint64(list[i])
			} else {
				tf, n = binary.Uvarint(list[i:])
			}
			if i += n; n <= 0 || tf < 2 || tf > maxDocumentWords {
				panic(failure{corrupt("a list has an invalid count")})
			}
		}
		ord := v>>1 + next
		if ord >= uint64(end) || v>>1 > uint64(end) {
			panic(failure{corrupt("a list has an unknown document")})
		}
		out = append(out, posting{ord: uint32(ord), tf: uint32(tf)})
		next = ord + 1
	}
	return out
}

// takePositions cuts off the positions of the next document, whose number is tf.
func takePositions(data []byte, tf uint32) (doc, rest []byte) {
	end := 0
	for ; tf > 0 && end < len(data); end++ {
		if data[end] < 0x80 {
			tf--
		}
	}
	if tf > 0 {
		panic(failure{corrupt("a list has too few positions")})
	}
	return data[:end], data[end:]
}

// decodePositions appends the positions of one document.
func decodePositions(out []uint32, doc []byte) []uint32 {
	at := uint64(0)
	for len(doc) > 0 {
		v, n := binary.Uvarint(doc)
		if n <= 0 || v > maxPosition || at+v > maxPosition {
			panic(failure{corrupt("a list has an invalid position")})
		}
		at += v
		out = append(out, uint32(at))
		doc = doc[n:]
	}
	return out
}

// maxPosition bounds positions, including the gaps between fields.
const maxPosition = 1 << 31

// bitmap is a set of ords. The zero value is empty.
type bitmap []uint64

func (b bitmap) has(ord uint32) bool {
	return int(ord/64) < len(b) && b[ord/64]&(1<<(ord%64)) != 0
}

func (b *bitmap) set(ord uint32) {
	for int(ord/64) >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[ord/64] |= 1 << (ord % 64)
}

// word returns 64 bits of the set.
func (b bitmap) word(n int) uint64 {
	if n < len(b) {
		return b[n]
	}
	return 0
}

// next returns the first element that is not less than ord.
func (b bitmap) next(ord uint32) (first uint32, ok bool) {
	if b.has(ord) {
		return ord, true
	}
	for n := int(ord / 64); n < len(b); n++ {
		set := b[n]
		if n == int(ord/64) {
			set &^= 1<<(ord%64) - 1
		}
		if set != 0 {
			return uint32(n*64 + bits.TrailingZeros64(set)), true //nolint:gosec // an ord
		}
	}
	return 0, false
}

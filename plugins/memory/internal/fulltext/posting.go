package fulltext

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrCorrupt says that a file of the index does not hold what was written. The
// index answers no more: the owner calls [Index.Reset] and replays all changes.
var ErrCorrupt = errors.New("the full-text index is corrupt")

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
}

// posting says how often a form stands in a document. A document's ord is its
// number in its part.
type posting struct {
	ord, tf uint32
}

// A list of postings is a string of varints: the gap to the document before,
// doubled, plus one if the form stands there once; otherwise the count
// follows. Positions are kept apart, so that a search without phrases never
// reads them: for each document the first position, then the gaps.

// appendPosting adds a document to a list whose next possible ord is next.
func appendPosting(list []byte, next uint32, p posting) []byte {
	gap := uint64(p.ord-next) << 1
	if p.tf == 1 {
		return binary.AppendUvarint(list, gap|1)
	}
	return binary.AppendUvarint(binary.AppendUvarint(list, gap), uint64(p.tf))
}

// decodePostings appends the postings of a list whose documents are below
// docs. It stops before the first one that is not and reports whether the
// list was used up.
func decodePostings(out []posting, list []byte, docs uint32) (_ []posting, whole bool, err error) {
	next := uint64(0)
	for i := 0; i < len(list); {
		v := uint64(list[i])
		i++
		if v >= 0x80 { // one byte is usual, two are not rare
			if i < len(list) && list[i] < 0x80 {
				v = v&0x7F | uint64(list[i])<<7
				i++
			} else {
				var n int
				v, n = binary.Uvarint(list[i-1:])
				if n <= 0 {
					return out, false, corrupt("a list has a broken number")
				}
				i += n - 1
			}
		}
		tf := uint64(1)
		if v&1 == 0 {
			n := 1
			if i < len(list) && list[i] < 0x80 {
				tf = uint64(list[i])
			} else {
				tf, n = binary.Uvarint(list[i:])
			}
			if n <= 0 || tf < 2 || tf > maxDocumentWords {
				return out, false, corrupt("a list has a broken count")
			}
			i += n
		}
		ord := v>>1 + next
		if ord >= uint64(docs) || v>>1 > uint64(docs) {
			return out, false, nil
		}
		out = append(out, posting{ord: uint32(ord), tf: uint32(tf)})
		next = ord + 1
	}
	return out, true, nil
}

// positionReader walks through the positions of a list, document by document.
type positionReader struct {
	data []byte
}

// take returns the bytes of the next document's positions.
func (r *positionReader) take(tf uint32) ([]byte, error) {
	end := 0
	for range tf {
		for {
			if end >= len(r.data) {
				return nil, corrupt("a list has too few positions")
			}
			end++
			if r.data[end-1] < 0x80 {
				break
			}
		}
	}
	head := r.data[:end]
	r.data = r.data[end:]
	return head, nil
}

// decodePositions appends the positions in the bytes of one document.
func decodePositions(out []uint32, data []byte) ([]uint32, error) {
	at := uint64(0)
	for len(data) > 0 {
		v, n := binary.Uvarint(data)
		if n <= 0 || v > maxPosition || at+v > maxPosition {
			return out, corrupt("a list has a broken position")
		}
		at += v
		out = append(out, uint32(at))
		data = data[n:]
	}
	return out, nil
}

// maxPosition bounds positions: every word of a document, and a gap between
// any two fields.
const maxPosition = 1 << 31

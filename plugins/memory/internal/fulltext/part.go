package fulltext

import (
	"iter"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/sdk/x/words"
)

// part is a set of documents with its lists: the part in memory, or a segment.
// The index's lock guards its mutable fields.
type part struct {
	lists interface {
		// scan returns the lists of the keys that begin with the prefix, ascending by key; see stemKey. An empty prefix
		// selects all forms.
		scan(prefix string) iter.Seq[list]
	}
	ids     []int64
	ordered bool // the ids ascend, as in a segment
	lens    []uint32
	dead    bitmap // documents that were replaced or deleted
	gone    int
	live    int64 // words of the live documents
}

func (p *part) kill(ord uint32) {
	p.dead.set(ord)
	p.gone++
	p.live -= int64(p.lens[ord])
}

// list locates the list of a form. The bytes of the part in memory are valid
// while the index's lock is held.
type list struct {
	key             string
	df              int
	term            *memTerm // in memory, or nil
	segment         *segment
	at              int64
	docsLen, posLen int
	dirLen          int // 0 if it has a single block
}

// positions returns the positions, which can be in buf.
func (l list) positions(buf *[]byte) []byte {
	if l.term != nil {
		return l.term.pos
	}
	*buf = slices.Grow((*buf)[:0], l.posLen+crcBytes)[:l.posLen+crcBytes]
	return l.segment.read(*buf, l.at+int64(l.docsLen)+crcBytes)
}

// Besides its form, a list has a key for each stem, so that scan finds the lists
// of a word. Forms are valid UTF-8 and sort before these keys.
const stemMark = "\xff"

func stemKey(stem, form string) string { return stemMark + stem + "\x00" + form }

// wordLists returns the lists of the forms that share a stem with the word.
func (p *part) wordLists(word words.Keys) (out []list) {
	for _, stem := range word {
		if stem == "" {
			continue
		}
		for l := range p.lists.scan(stemKey(stem, "")) {
			_, l.key, _ = strings.Cut(l.key, "\x00")
			if !slices.ContainsFunc(out, func(o list) bool { return o.key == l.key }) {
				out = append(out, l)
			}
		}
	}
	return out
}

// walk visits the forms of several parts that begin with the prefix, in ascending
// order, each with its list in every part; df is 0 in parts without the form. The
// slice is valid until the next step.
func walk(parts []*part, prefix string) iter.Seq[[]list] {
	return func(yield func([]list) bool) {
		type cursor struct {
			list
			next func() (list, bool)
			more bool
		}
		cursors := make([]cursor, len(parts))
		for i, p := range parts {
			next, stop := iter.Pull(p.lists.scan(prefix))
			defer stop()
			c := &cursors[i]
			c.next = next
			c.list, c.more = next()
		}
		lists := make([]list, len(parts))
		for {
			var first *cursor
			for i := range cursors {
				if c := &cursors[i]; c.more && (first == nil || c.key < first.key) {
					first = c
				}
			}
			if first == nil {
				return
			}
			key := first.key
			for i := range cursors {
				lists[i] = list{}
				if c := &cursors[i]; c.more && c.key == key {
					lists[i] = c.list
					c.list, c.more = c.next()
				}
			}
			if !yield(lists) {
				return
			}
		}
	}
}

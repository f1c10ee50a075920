package fulltext

import (
	"iter"
	"slices"
	"strings"
)

// part is a set of documents with its lists: the part in memory, or a segment.
// Everything that changes is guarded by the index's lock.
type part struct {
	lists interface {
		// scan returns the lists of the keys that begin with the prefix,
		// ascending by key; see stemKey. Of all keys, it returns the forms.
		scan(prefix string) iter.Seq2[list, error]
	}
	ids  []int64
	lens []uint32
	dead bitmap // documents that were replaced or deleted
	gone int    // how many are dead
	live int64  // words of the other documents
}

// kill marks a document as dead.
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
}

// docs returns the postings. It may use buf, which it returns grown.
func (l list) docs(buf []byte) (data, grown []byte, err error) {
	if l.term != nil {
		return l.term.docs, buf, nil
	}
	return l.segment.read(buf, l.at, l.docsLen)
}

// positions returns the positions, like docs.
func (l list) positions(buf []byte) (data, grown []byte, err error) {
	if l.term != nil {
		return l.term.pos, buf, nil
	}
	return l.segment.read(buf, l.at+int64(l.docsLen)+crcBytes, l.posLen)
}

// Besides its form, a list has a key for each stem: so that scan finds the
// lists of a word. Forms are valid UTF-8 and come before all of these.
const stemMark = "\xff"

// stemKey is the key of a form by one of its stems.
func stemKey(stem, form string) string { return stemMark + stem + "\x00" + form }

// wordLists returns the lists of the forms that share a stem with the word.
func (p *part) wordLists(word keys) (out []list, err error) {
	for _, stem := range word {
		if stem == "" {
			continue
		}
		for l, err := range p.lists.scan(stemKey(stem, "")) {
			if err != nil {
				return nil, err
			}
			_, l.key, _ = strings.Cut(l.key, "\x00")
			if !slices.ContainsFunc(out, func(o list) bool { return o.key == l.key }) {
				out = append(out, l)
			}
		}
	}
	return out, nil
}

// postings appends the postings of a list, without dead documents.
func (p *part) postings(out []posting, l list, buf *[]byte) ([]posting, error) {
	data, grown, err := l.docs(*buf)
	if err != nil {
		return out, err
	}
	*buf = grown
	from := len(out)
	if out, err = decodePostings(out, data, uint32(len(p.ids))); err != nil || p.gone == 0 {
		return out, err
	}
	live := slices.DeleteFunc(out[from:], func(q posting) bool { return p.dead.has(q.ord) })
	return out[:from+len(live)], nil
}

// walk visits the forms of several parts that begin with the prefix, in
// ascending order, each with its list in every part; a part without it has one
// with df 0. The slice is valid until the next step.
func walk(parts []*part, prefix string) iter.Seq2[[]list, error] {
	return func(yield func([]list, error) bool) {
		type cursor struct {
			list
			next func() (list, error, bool)
			more bool
		}
		cursors := make([]cursor, len(parts))
		for i, p := range parts {
			next, stop := iter.Pull2(p.lists.scan(prefix))
			defer stop()
			cursors[i].next = next
		}
		lists := make([]list, len(parts))
		advance := func(c *cursor) (err error) {
			c.list, err, c.more = c.next()
			return err
		}
		for i := range cursors {
			if err := advance(&cursors[i]); err != nil {
				yield(nil, err)
				return
			}
		}
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
					if err := advance(c); err != nil {
						yield(nil, err)
						return
					}
				}
			}
			if !yield(lists, nil) {
				return
			}
		}
	}
}

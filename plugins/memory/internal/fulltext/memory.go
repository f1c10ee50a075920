package fulltext

import (
	"encoding/binary"
	"iter"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/sdk/x/words"
)

// memTerm is the list of a form in memory.
type memTerm struct {
	form      string
	docs, pos []byte
	next      uint32 // the lowest possible ord of the next document
	df        int

	tf, last uint32 // in the document that is being added
}

// memPart is the part of the index that takes new documents.
type memPart struct {
	part
	terms     map[string]*memTerm   // by form
	stems     map[string][]*memTerm // by stem
	spellings map[string]string     // forms of words that differ from their spelling
	byID      map[int64]uint32      // live documents
	size      int                   // approximate size in bytes
	touched   []*memTerm
}

func newMemPart() *memPart {
	m := &memPart{terms: map[string]*memTerm{}, stems: map[string][]*memTerm{}, spellings: map[string]string{}, byID: map[int64]uint32{}}
	m.lists = m
	return m
}

// The approximate sizes of a form in addition to its text, of a document, and of
// a word of a document.
const (
	termBytes     = 240
	documentBytes = 64
	wordBytes     = 3
)

// occurrence is a form at a position. The term is nil if the form is new.
type occurrence struct {
	term *memTerm
	form string
	pos  uint32
}

// occurrence requires the writer's lock.
func (m *memPart) occurrence(text []byte, pos uint32, lang *words.Language) occurrence {
	if t := m.terms[string(text)]; t != nil {
		return occurrence{term: t, pos: pos}
	}
	form, ok := m.spellings[string(text)]
	if !ok {
		if form = lang.Form(string(text)); form != string(text) {
			m.spellings[string(text)] = form
		}
	}
	return occurrence{m.terms[form], form, pos}
}

func (m *memPart) add(id int64, words []occurrence, lang *words.Language) {
	ord := uint32(len(m.ids))
	m.touched = m.touched[:0]
	for _, w := range words {
		t := w.term
		if t == nil {
			t = m.enter(w.form, lang)
		}
		if t.tf == 0 {
			m.touched = append(m.touched, t)
			t.last = 0
		}
		t.pos = binary.AppendUvarint(t.pos, uint64(w.pos-t.last))
		t.tf++
		t.last = w.pos
	}
	for _, t := range m.touched {
		t.docs = appendPosting(t.docs, t.next, posting{ord: ord, tf: t.tf})
		t.next, t.tf = ord+1, 0
		t.df++
	}
	m.ids = append(m.ids, id)
	m.lens = append(m.lens, uint32(len(words)))
	m.live += int64(len(words))
	m.byID[id] = ord
	m.size += documentBytes + wordBytes*len(words)
}

func (m *memPart) enter(form string, lang *words.Language) *memTerm {
	t := m.terms[form]
	if t != nil {
		return t
	}
	t = &memTerm{form: form}
	m.terms[form] = t
	for _, stem := range lang.Keys(form) {
		if stem != "" {
			m.stems[stem] = append(m.stems[stem], t)
		}
	}
	m.size += termBytes + 2*len(form)
	return t
}

func (m *memPart) scan(prefix string) iter.Seq[list] {
	return func(yield func(list) bool) {
		stem, byStem := strings.CutPrefix(prefix, stemMark)
		var found []*memTerm
		if byStem {
			found = slices.Clone(m.stems[strings.TrimSuffix(stem, "\x00")])
		} else {
			for form, t := range m.terms {
				if strings.HasPrefix(form, prefix) {
					found = append(found, t)
				}
			}
		}
		slices.SortFunc(found, func(a, b *memTerm) int { return strings.Compare(a.form, b.form) })
		for _, t := range found {
			l := list{key: t.form, df: t.df, term: t}
			if byStem {
				l.key = prefix + t.form
			}
			if !yield(l) {
				return
			}
		}
	}
}

package fulltext

import (
	"encoding/binary"
	"slices"
	"strings"
	"sync"
)

// memTerm is the list of a form in the part in memory. Its slices only grow,
// so a reader may keep a copy of their headers.
type memTerm struct {
	form      string
	keys      keys
	docs, pos []byte
	next      uint32 // the least ord that may come next
	df        int

	tf, last uint32 // in the document that is being added
}

// memPart is the part of the index that takes new documents. The lock is the
// index's own; a frozen part is not written any more but still read under it.
type memPart struct {
	lock   *sync.RWMutex
	terms  map[string]*memTerm
	stems  map[string][]*memTerm
	forms  map[string]string // of words that are spelled in another way
	sorted []*memTerm        // by form; replaced, never changed
	fresh  []*memTerm        // not yet in sorted

	ids     []int64
	lens    []uint32
	byID    map[int64]uint32
	dead    deadSet
	saved   deadSet // of a frozen part: dead when it was frozen
	size    int     // an estimate of the bytes held
	lastSeq int64

	touched []*memTerm
}

func newMemPart(lock *sync.RWMutex) *memPart {
	return &memPart{lock: lock, terms: map[string]*memTerm{}, stems: map[string][]*memTerm{}, forms: map[string]string{}, byID: map[int64]uint32{}}
}

// maxFresh is how many forms wait to be sorted in.
const maxFresh = 2048

// termBytes is about what a form costs beyond its text.
const termBytes = 240

// occurrence is a form at a position.
type occurrence struct {
	term *memTerm
	pos  uint32
}

// term returns the term of a normalized word, creating it if need be. The
// caller holds the writers' lock; add makes a new term visible.
func (m *memPart) term(text []byte, lang *language) *memTerm {
	if t := m.terms[string(text)]; t != nil {
		return t
	}
	form, known := m.forms[string(text)]
	if !known {
		if form = lang.form(string(text)); form != string(text) {
			m.forms[string(text)] = form
		}
	}
	if t := m.terms[form]; t != nil {
		return t
	}
	t := &memTerm{form: form}
	t.keys = lang.keys(t.form)
	return t
}

// add puts a document into the part. The caller holds the lock for writing.
func (m *memPart) add(id int64, words []occurrence) {
	ord := uint32(len(m.ids))
	m.touched = m.touched[:0]
	for _, w := range words {
		t := w.term
		if t.df == 0 && t.tf == 0 {
			// Twins come when a document has a new form more than once.
			if twin := m.terms[t.form]; twin != nil {
				t = twin
			} else {
				m.enter(t)
			}
		}
		if t.tf == 0 {
			m.touched = append(m.touched, t)
			t.last = 0
		}
		before := len(t.pos)
		t.pos = binary.AppendUvarint(t.pos, uint64(w.pos-t.last))
		m.size += len(t.pos) - before
		t.tf++
		t.last = w.pos
	}
	for _, t := range m.touched {
		before := len(t.docs)
		t.docs = appendPosting(t.docs, t.next, posting{ord: ord, tf: t.tf})
		m.size += len(t.docs) - before
		t.next, t.tf = ord+1, 0
		t.df++
	}
	m.ids = append(m.ids, id)
	m.lens = append(m.lens, uint32(len(words)))
	m.byID[id] = ord
	m.size += 64
}

// enter makes a term known.
func (m *memPart) enter(t *memTerm) {
	m.terms[t.form] = t
	for _, key := range t.keys {
		if key != "" {
			m.stems[key] = append(m.stems[key], t)
		}
	}
	m.size += termBytes + len(t.form) + len(t.keys[0])
	m.fresh = append(m.fresh, t)
	if len(m.fresh) < max(maxFresh, len(m.sorted)/4) {
		return
	}
	slices.SortFunc(m.fresh, byForm)
	m.sorted, m.fresh = mergeTerms(m.sorted, m.fresh), nil
}

// mergeTerms makes one run of two sorted ones.
func mergeTerms(a, b []*memTerm) []*memTerm {
	out := make([]*memTerm, 0, len(a)+len(b))
	for _, t := range b {
		n, _ := slices.BinarySearchFunc(a, t, byForm)
		out = append(append(out, a[:n]...), t)
		a = a[n:]
	}
	return append(out, a...)
}

func byForm(a, b *memTerm) int { return strings.Compare(a.form, b.form) }

// kill marks the live version of a document dead and returns its length.
func (m *memPart) kill(id int64) (length uint32, ok bool) {
	ord, ok := m.byID[id]
	if !ok {
		return 0, false
	}
	delete(m.byID, id)
	m.dead = m.dead.with(ord)
	return m.lens[ord], true
}

// list returns what the term holds now.
func (t *memTerm) list() list {
	return list{form: t.form, df: t.df, memory: &listBytes{t.docs, t.pos}}
}

// wordLists returns the lists of the forms that share a key with the word.
func (m *memPart) wordLists(word keys, _ *language) ([]list, error) {
	m.lock.RLock()
	defer m.lock.RUnlock()
	var out []list
	for i, key := range word {
		for _, t := range m.stems[key] {
			if i == 0 || !t.keys.has(word[0]) {
				out = append(out, t.list())
			}
		}
	}
	return out, nil
}

// prefixLists returns the first n lists, by form, of the forms that begin with
// the prefix and come after the given one.
func (m *memPart) prefixLists(prefix, after string, n int) ([]list, error) {
	m.lock.RLock()
	defer m.lock.RUnlock()
	fits := func(t *memTerm) bool { return strings.HasPrefix(t.form, prefix) && t.form > after }
	var found []*memTerm
	i, _ := slices.BinarySearchFunc(m.sorted, max(prefix, after), func(t *memTerm, s string) int { return strings.Compare(t.form, s) })
	for ; i < len(m.sorted) && len(found) <= n && strings.HasPrefix(m.sorted[i].form, prefix); i++ {
		if fits(m.sorted[i]) {
			found = append(found, m.sorted[i])
		}
	}
	for _, t := range m.fresh {
		if fits(t) {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, byForm)
	found = found[:min(len(found), n)]
	out := make([]list, 0, len(found))
	for _, t := range found {
		out = append(out, t.list())
	}
	return out, nil
}

// readDocs returns the bytes of a list's postings.
func (m *memPart) readDocs(l list, _ []byte) ([]byte, error) { return l.memory.docs, nil }

// readPositions returns the bytes of a list's positions.
func (m *memPart) readPositions(l list, _ []byte) ([]byte, error) { return l.memory.pos, nil }

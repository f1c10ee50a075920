package fulltext

import (
	"context"
	"math"
	"math/bits"
	"slices"
	"sort"

	"github.com/the-edge-agent/tea/sdk/x/words"
)

// The parameters of BM25, with the usual defaults.
const (
	k1 = 1.2
	b  = 0.75
)

// idf returns the weight of a term that df of n documents contain.
func idf(n, df int) float64 {
	return math.Log1p((float64(n-df) + 0.5) / (float64(df) + 0.5))
}

// SearchOptions narrow a search. The zero value accepts every match.
type SearchOptions struct {
	// Tag restricts the search to documents with the tag; "" = all.
	Tag string
	// Require are texts that a document must contain as phrases. They do not affect
	// the score; a text without words has no effect.
	Require []string
	// Limit is the maximum number of hits; 0 = all. With a limit the cost
	// depends less on the number of matches.
	Limit int
	// Statistics weigh the terms of the query, for a search in several indexes; nil = the index's own.
	Statistics *Statistics
}

// Search finds the documents that have any of the query's words and all of its
// phrases, and ranks them by BM25 over the live documents. A query without words,
// or of stop words only, finds nothing. The errors are the context's, errors of
// reading, and [ErrCorrupt].
func (x *Index) Search(ctx context.Context, text string, o SearchOptions) (*Ranked, error) {
	q := parseQuery(text, x.lang)
	for _, text := range o.Require {
		p := queryParser{lang: x.lang, seen: map[term]bool{}}
		p.phrase(text)
		q.phrases = append(q.phrases, p.query.phrases...)
	}
	if len(q.terms) == 0 {
		q.phrases = nil
	}
	ranked := newRanked(nil, q.cut)
	err := x.search(ctx, func(s *search) {
		if s.docs > 0 {
			s.limit = max(0, o.Limit)
			s.run(q, o)
			ranked = newRanked(s.hits(), q.cut || s.cut)
			ranked.partial = s.full()
		}
	})
	if err != nil {
		return nil, err
	}
	return ranked, nil
}

func (x *Index) search(ctx context.Context, fn func(*search)) (err error) {
	defer func() { x.noteCorruption(err) }()
	x.mu.RLock()
	defer x.mu.RUnlock()
	if err := x.usable(); err != nil {
		return err
	}
	defer catch(&err)
	mem, ok := x.memory.Get().(*searchMemory)
	if !ok {
		mem = new(searchMemory)
	}
	fn(newSearch(ctx, x.parts(), mem))
	mem.reset()
	x.memory.Put(mem) // not after a failure, which leaves scores in the window
	return ctx.Err()
}

// search is a search in progress.
type search struct {
	ctx   context.Context
	mem   *searchMemory
	parts []*part
	views []view
	docs  int
	words int64
	forms map[term][][]list // of prefixes, by view
	taken int               // forms, by all prefixes
	cut   bool
	limit int
	found []Hit // with a limit, a heap of flipped hits once it is full
}

// view is a part with the documents that a search accepts.
type view struct {
	*part
	tag    *cursor // only its documents match
	wanted bitmap  // with filter, only these documents match
	filter bool
}

// accepts reports whether the document passes the tag and the phrases so far.
func (v *view) accepts(ord uint32) bool {
	return (!v.filter || v.wanted.has(ord)) && (v.tag == nil || v.tag.tf(ord) > 0)
}

// nextAccepted returns a document that is not less than ord, and not greater than
// the first one that passes the tag and the phrases.
func (v *view) nextAccepted(ord uint32) (next uint32, ok bool) {
	if v.filter {
		if ord, ok = v.wanted.next(ord); !ok {
			return 0, false
		}
	}
	if v.tag != nil {
		p, ok := v.tag.next(ord)
		return p.ord, ok
	}
	return ord, true
}

// restrict makes only these documents match.
func (v *view) restrict(to bitmap) { v.wanted, v.filter = to, true }

// searchMemory is the memory of a search that the next one can use.
type searchMemory struct {
	scratch
	window window
	union  bitmap
	tmp    []posting
	pos    []byte
	places []uint32
}

func (m *searchMemory) reset() {
	m.scratch.reset()
	if cap(m.pos) > 1<<20 || cap(m.tmp) > 1<<17 {
		m.pos, m.tmp = nil, nil
	}
}

func newSearch(ctx context.Context, parts []*part, mem *searchMemory) *search {
	// The largest part first: others then have to compete with its best documents.
	sort.SliceStable(parts, func(i, j int) bool { return len(parts[i].ids) > len(parts[j].ids) })
	s := &search{ctx: ctx, mem: mem, parts: parts, views: make([]view, len(parts)), forms: map[term][][]list{}}
	for i, p := range parts {
		s.docs += len(p.ids) - p.gone
		s.words += p.live
		s.views[i].part = p
	}
	return s
}

// run scores the documents. It counts each term over all views before it weighs it,
// because the weight depends on the number of live documents with the term.
func (s *search) run(q query, o SearchOptions) {
	s.restrict(o.Tag)
	for _, phrase := range q.phrases {
		for i := range s.views {
			s.matchPhrase(i, phrase)
		}
	}
	average := float64(s.words) / float64(s.docs)
	if o.Statistics != nil {
		average = o.Statistics.average()
	}
	clauses := make([][]clause, len(s.views))
	most := 0
	for _, t := range q.terms {
		opened, df := s.open(t)
		if df == 0 {
			continue
		}
		most += df
		weight := idf(s.docs, df)
		if o.Statistics != nil {
			weight = o.Statistics.weight(t)
		}
		for i, cursors := range opened {
			if len(cursors) > 0 {
				clauses[i] = append(clauses[i], clause{cursors: cursors, weight: weight * (k1 + 1)})
			}
		}
	}
	if s.limit == 0 && len(q.phrases) == 0 {
		s.found = make([]Hit, 0, min(most, s.docs))
	}
	for i := range s.views {
		if len(clauses[i]) > 0 {
			v := scorer{search: s, view: &s.views[i], window: &s.mem.window, clauses: clauses[i], slope: k1 * b / average}
			v.run()
		}
	}
}

// restrict narrows the views to the documents with a tag. A view in which all
// documents have it needs no filter.
func (s *search) restrict(tag string) {
	if tag == "" {
		return
	}
	for i := range s.views {
		v := &s.views[i]
		switch lists := v.wordLists(words.Keys{words.Literal + tag}); {
		case len(lists) == 0:
			v.restrict(nil)
		case lists[0].df < len(v.ids):
			c := v.cursor(lists[0], &s.mem.scratch)
			v.tag = &c
		}
	}
}

// open opens the lists of a term in each view, and returns the number of live
// documents with it.
func (s *search) open(t term) (opened [][]cursor, df int) {
	opened = make([][]cursor, len(s.views))
	for i := range s.views {
		lists := s.lists(i, t)
		cursors := make([]cursor, len(lists))
		for n, l := range lists {
			cursors[n] = s.views[i].cursor(l, &s.mem.scratch)
		}
		opened[i] = cursors
		df += s.count(&s.views[i], cursors)
	}
	delete(s.forms, t) // the next prefix can have as many lists
	return opened, df
}

// count returns the number of live documents in the union of lists. It decodes all
// but the longest list, in which it looks up the documents of the others and the dead ones.
func (s *search) count(v *view, cursors []cursor) int {
	if len(cursors) == 0 {
		return 0
	}
	longest := &cursors[0]
	for i := range cursors {
		if c := &cursors[i]; c.df > longest.df {
			longest = c
		}
	}
	if len(cursors) == 1 && v.gone == 0 {
		return longest.df
	}
	union := s.mem.union[:0]
	for i := range cursors {
		if c := &cursors[i]; c != longest {
			for block := range c.blocks {
				c.load(block)
				for _, p := range c.postings {
					union.set(p.ord)
				}
			}
		}
	}
	n := longest.df
	for w := range max(len(union), len(v.dead)) {
		set, dead := union.word(w), v.dead.word(w)
		for both := set | dead; both != 0; both &= both - 1 {
			bit := both & -both
			in := longest.tf(uint32(w*64+bits.TrailingZeros64(both))) > 0
			if !in && set&bit != 0 {
				n++
			}
			if dead&bit != 0 && (in || set&bit != 0) {
				n--
			}
		}
	}
	s.mem.union = union
	return n
}

func (s *search) lists(i int, t term) []list {
	s.checkContext()
	if !t.prefix {
		return s.views[i].wordLists(t.keys)
	}
	if s.forms[t] == nil {
		s.forms[t] = s.expand(t.keys[0])
	}
	return s.forms[t][i]
}

func (s *search) checkContext() {
	if err := s.ctx.Err(); err != nil {
		panic(failure{err})
	}
}

// expand returns the lists of the first maxForms forms that begin with the prefix
// and that a live document has, by view. Forms of dead documents are ignored, so
// that a merge does not change the result.
func (s *search) expand(prefix string) [][]list {
	found := make([][]list, len(s.parts))
	limit := min(maxForms, maxAllForms-s.taken)
	for lists := range walk(s.parts, prefix) {
		live := false
		for i := 0; i < len(lists) && !live; i++ {
			live = s.hasLive(i, lists[i])
		}
		if !live {
			continue
		}
		if limit == 0 {
			s.cut = true
			break
		}
		limit--
		s.taken++
		for i, l := range lists {
			if l.df > 0 {
				found[i] = append(found[i], l)
			}
		}
	}
	return found
}

func (s *search) hasLive(i int, l list) bool {
	v := &s.views[i]
	if v.gone < l.df || l.df == 0 {
		return l.df > 0
	}
	return s.count(v, []cursor{v.cursor(l, &s.mem.scratch)}) > 0
}

// start is a possible start of a phrase: a document in the upper half and a
// position in the lower, so that starts compare as numbers.
type start = uint64

// matchPhrase restricts a view to the documents that contain the phrase. It
// proceeds term by term and keeps the starts that match every term so far.
func (s *search) matchPhrase(i int, phrase []phraseTerm) {
	v := &s.views[i]
	var starts []start
	for n, t := range phrase {
		lists := s.lists(i, t.term)
		var next []start
		for _, l := range lists {
			next = s.starts(next, v, l, t.offset)
		}
		if len(lists) > 1 {
			slices.Sort(next)
		}
		if n > 0 {
			next = common(starts, next)
		}
		starts = next
		var wanted bitmap
		for _, at := range starts {
			wanted.set(uint32(at >> 32))
		}
		v.restrict(wanted) // the next term is only looked up in these
	}
}

// common returns the intersection of two ascending lists. It overwrites a.
func common(a, b []start) []start {
	out, i := a[:0], 0
	for _, at := range a {
		for i < len(b) && b[i] < at {
			i++
		}
		if i < len(b) && b[i] == at {
			out = append(out, at)
		}
	}
	return out
}

// starts appends the starts of the phrase where the list's form is at its offset.
func (s *search) starts(out []start, v *view, l list, offset uint32) []start {
	c := s.mem
	cursor := v.cursor(l, &c.scratch)
	c.tmp = cursor.all(c.tmp[:0])
	positions := l.positions(&c.pos)
	for _, p := range c.tmp {
		var own []byte
		own, positions = takePositions(positions, p.tf)
		if v.dead.has(p.ord) || !v.accepts(p.ord) {
			continue
		}
		c.places = decodePositions(c.places[:0], own)
		for _, place := range c.places {
			if place >= offset {
				out = append(out, start(p.ord)<<32|start(place-offset))
			}
		}
	}
	return out
}

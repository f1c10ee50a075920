package fulltext

import (
	"context"
	"math"
	"slices"
	"sync"
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
			s.run(q, o)
			ranked = newRanked(s.hits(), q.cut || s.cut)
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
	s := newSearch(ctx, x.parts(), &x.cells)
	fn(s)
	x.cells.Put(s.cells) // after a failure they are not zeroed
	return ctx.Err()
}

// search is a search in progress. Its arrays have one cell per document; they
// come from a pool and return to it with all scores and counts 0.
type search struct {
	ctx   context.Context
	parts []*part
	views []view
	docs  int
	words int64
	cells *cells
	forms map[term][][]list // of prefixes, by view
	taken int               // forms, by all prefixes
	cut   bool
}

// view is a part with the search's state of its documents.
type view struct {
	*part
	scores  []float64
	counts  []uint32
	touched []uint32  // documents with a score
	out     []posting // of the current term
	wanted  bitmap    // with filter, only these documents match
	filter  bool
}

// accepts reports whether the document passes the tag and the phrases so far.
func (v *view) accepts(ord uint32) bool { return !v.filter || v.wanted.has(ord) }

// restrict makes only these documents match.
func (v *view) restrict(to bitmap) { v.wanted, v.filter = to, true }

type cells struct {
	scores  []float64
	counts  []uint32
	touched []uint32
	out     []posting

	tmp      []posting
	buf, pos []byte
	places   []uint32
}

func newSearch(ctx context.Context, parts []*part, pool *sync.Pool) *search {
	s := &search{ctx: ctx, parts: parts, views: make([]view, len(parts)), forms: map[term][][]list{}}
	total := 0
	for _, p := range parts {
		total += len(p.ids)
		s.docs += len(p.ids) - p.gone
		s.words += p.live
	}
	c, ok := pool.Get().(*cells)
	if !ok {
		c = new(cells)
	}
	if len(c.scores) < total {
		n := total + total/8
		c.scores, c.counts, c.touched, c.out = make([]float64, n), make([]uint32, n), make([]uint32, n), make([]posting, n)
	}
	s.cells = c
	from := 0
	for i, p := range parts {
		end := from + len(p.ids)
		s.views[i] = view{
			part: p, scores: c.scores[from:end], counts: c.counts[from:end],
			touched: c.touched[from:from:end], out: c.out[from:from:end],
		}
		from = end
	}
	return s
}

// run adds up the scores. It counts each term over all views before it weighs it,
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
	for _, t := range q.terms {
		df := s.gatherAll(t)
		if df == 0 {
			continue
		}
		weight := idf(s.docs, df)
		if o.Statistics != nil {
			weight = o.Statistics.weight(t)
		}
		for i := range s.views {
			s.views[i].addScores(weight, average)
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
		lists := v.wordLists(keys{tagged + tag})
		if len(lists) == 1 && lists[0].df == len(v.ids) {
			continue
		}
		var wanted bitmap
		for _, l := range lists {
			s.cells.tmp = v.postings(s.cells.tmp, l, &s.cells.buf)
			for _, p := range s.cells.tmp {
				wanted.set(p.ord)
			}
		}
		v.restrict(wanted)
	}
}

// gatherAll collects the live postings of a term in all views and returns their
// number.
func (s *search) gatherAll(t term) (df int) {
	for i := range s.views {
		s.collectPostings(i, t)
		df += len(s.views[i].out)
	}
	delete(s.forms, t) // the next prefix can have as many lists
	return df
}

// collectPostings collects the live postings of a term into the view's out, in any order.
func (s *search) collectPostings(i int, t term) {
	v := &s.views[i]
	v.out = v.out[:0]
	lists := s.lists(i, t)
	if len(lists) == 1 {
		v.out = v.postings(v.out, lists[0], &s.cells.buf)
		return
	}
	for _, l := range lists {
		s.cells.tmp = v.postings(s.cells.tmp, l, &s.cells.buf)
		for _, p := range s.cells.tmp {
			if v.counts[p.ord] == 0 {
				v.out = append(v.out, posting{ord: p.ord})
			}
			v.counts[p.ord] += p.tf
		}
	}
	for i := range v.out {
		p := &v.out[i]
		p.tf, v.counts[p.ord] = v.counts[p.ord], 0
	}
}

// addScores adds the scores of the current term.
func (v *view) addScores(weight, average float64) {
	const flat = k1 * (1 - b)
	weight *= k1 + 1
	slope := k1 * b / average
	for _, p := range v.out {
		if !v.accepts(p.ord) {
			continue
		}
		tf := float64(p.tf)
		before := v.scores[p.ord]
		if before == 0 {
			v.touched = append(v.touched, p.ord)
		}
		v.scores[p.ord] = before + weight*tf/(tf+flat+slope*float64(v.lens[p.ord]))
	}
}

func (s *search) hits() []Hit {
	n := 0
	for i := range s.views {
		n += len(s.views[i].touched)
	}
	out := make([]Hit, 0, n)
	for i := range s.views {
		v := &s.views[i]
		for _, ord := range v.touched {
			out = append(out, Hit{ID: v.ids[ord], Score: v.scores[ord]})
			v.scores[ord] = 0
		}
	}
	return out
}

func (s *search) lists(i int, t term) []list {
	if err := s.ctx.Err(); err != nil {
		panic(failure{err})
	}
	if !t.prefix {
		return s.views[i].wordLists(t.keys)
	}
	if s.forms[t] == nil {
		s.forms[t] = s.expand(t.keys[0])
	}
	return s.forms[t][i]
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
	s.cells.tmp = v.postings(s.cells.tmp, l, &s.cells.buf)
	return len(s.cells.tmp) > 0
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
	c := s.cells
	c.tmp = decodePostings(c.tmp[:0], l.docs(&c.buf), uint32(len(v.ids)))
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

package fulltext

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
)

// The parameters of BM25, and not to be set: they are the ones that every row
// store with a full-text index starts from.
const (
	k1 = 1.2
	b  = 0.75
)

// idf weighs a term that df of n documents have.
func idf(n, df int) float64 {
	return math.Log1p((float64(n-df) + 0.5) / (float64(df) + 0.5))
}

// SearchOptions narrows a search. The zero value takes every match.
type SearchOptions struct {
	// Limit is how many hits [Ranked.All] gives at most; 0 means all.
	Limit int
	// Tag restricts the search to documents that have it; "" = all.
	Tag string
	// Require are texts that a document must contain as phrases. They do not
	// count for the score, and one without words asks for nothing.
	Require []string
	// Accept is asked, in the order of the ranking and only as far as the hits
	// are read, whether a document may be given.
	Accept func(id int64) bool
	// Statistics weigh the same query with more documents than the index has;
	// nil = with its own.
	Statistics *Statistics
}

// Search finds the documents that have any of the query's words, and all of
// its phrases, and ranks them by BM25 over the documents that are live at this
// moment. A query without words, or of stop words only, finds nothing. Errors
// are those of the context, of reading, or [ErrCorrupt].
func (x *Index) Search(ctx context.Context, text string, o SearchOptions) (*Ranked, error) {
	q := parseQuery(text, x.lang)
	for _, text := range o.Require {
		p := queryParser{lang: x.lang, seen: map[term]bool{}}
		p.phrase(text)
		q.phrases = append(q.phrases, p.query.phrases...)
	}
	snap, err := x.snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.close()
	r := &Ranked{accept: o.Accept, limit: o.Limit, cut: q.cut}
	if len(q.terms) == 0 || snap.docs == 0 {
		return r, ctx.Err()
	}
	s := newSearch(ctx, x.lang, snap, &x.cells)
	s.statistics = o.Statistics
	defer s.close()
	if err := s.restrict(o.Tag); err != nil {
		x.noteCorruption(err)
		return nil, err
	}
	if err := s.run(q); err != nil {
		x.noteCorruption(err)
		return nil, err
	}
	r.cut = r.cut || s.cut
	r.hits = s.hits()
	return r, nil
}

// search is one search at work. Its arrays have one cell per document; they
// come from a pool, the scores and counts full of zeros, and go back so.
type search struct {
	ctx    context.Context
	lang   *language
	snap   *snapshot
	views  []scored
	pool   *sync.Pool
	cells  *cells
	forms  map[term][][]list // what prefixes stand for, by view
	taken  int               // forms, by all prefixes
	cut    bool
	failed bool

	statistics *Statistics // nil = those of the snapshot
}

// scored is a view with the search's state of its documents.
type scored struct {
	view
	scores  []float64
	counts  []uint32
	touched []uint32  // documents with a score
	out     []posting // of the term in hand
	wanted  []uint64  // a bitmap: with filter, only these documents match
	filter  bool
}

// wants tells whether the document has the phrases so far.
func (v *scored) wants(ord uint32) bool {
	return !v.filter || v.wanted[ord/64]&(1<<(ord%64)) != 0
}

// cells are the arrays of a search.
type cells struct {
	scores  []float64
	counts  []uint32
	touched []uint32
	out     []posting

	tmp      []posting
	buf, pos []byte
	places   []uint32
	begins   [2][]begin
}

func newSearch(ctx context.Context, lang *language, snap *snapshot, pool *sync.Pool) *search {
	total := 0
	for _, v := range snap.views {
		total += len(v.ids)
	}
	c, ok := pool.Get().(*cells)
	if !ok {
		c = new(cells)
	}
	if len(c.scores) < total {
		n := total + total/8
		c.scores, c.counts, c.touched, c.out = make([]float64, n), make([]uint32, n), make([]uint32, n), make([]posting, n)
	}
	s := &search{ctx: ctx, lang: lang, snap: snap, pool: pool, cells: c}
	s.views = make([]scored, len(snap.views))
	base := 0
	for i, v := range snap.views {
		end := base + len(v.ids)
		s.views[i] = scored{
			view: v, scores: c.scores[base:end], counts: c.counts[base:end],
			touched: c.touched[base:base:end], out: c.out[base:base:end],
		}
		base = end
	}
	return s
}

// close gives the arrays back. After an error they are not clean and go.
func (s *search) close() {
	if !s.failed {
		s.pool.Put(s.cells)
	}
}

// run adds up the scores. Each term is counted over all views before it is
// weighed: its weight needs the number of live documents that have it.
func (s *search) run(q query) (err error) {
	defer func() { s.failed = err != nil }()
	for _, phrase := range q.phrases {
		for i := range s.views {
			if err := s.matchPhrase(&s.views[i], i, phrase); err != nil {
				return err
			}
		}
	}
	average := float64(s.snap.tokens) / float64(s.snap.docs)
	if s.statistics != nil {
		average = s.statistics.average()
	}
	for _, t := range q.terms {
		df, err := s.gatherAll(t)
		if err != nil {
			return err
		}
		if df == 0 {
			continue
		}
		weight := idf(s.snap.docs, df)
		if s.statistics != nil {
			weight = s.statistics.weight(t)
		}
		for i := range s.views {
			s.views[i].weigh(weight, average)
		}
	}
	return nil
}

// restrict narrows what the views want to the documents with a tag. Where a
// view has no other tag, there is nothing to do.
func (s *search) restrict(tag string) (err error) {
	if tag == "" {
		return nil
	}
	defer func() { s.failed = err != nil }()
	for i := range s.views {
		v := &s.views[i]
		tags, err := v.prefixLists(tagged, "", 2)
		if err != nil {
			return err
		}
		if len(tags) == 1 && tags[0].form == tagged+tag {
			continue
		}
		v.wanted, v.filter = make([]uint64, len(v.ids)/64+1), true
		lists, err := v.prefixLists(tagged+tag, "", 1)
		if err != nil {
			return err
		}
		if len(lists) == 0 || lists[0].form != tagged+tag {
			continue
		}
		if s.cells.tmp, err = v.livePostings(s.cells.tmp[:0], lists[0], &s.cells.buf); err != nil {
			return err
		}
		for _, p := range s.cells.tmp {
			v.wanted[p.ord/64] |= 1 << (p.ord % 64)
		}
	}
	return nil
}

// gatherAll collects the live postings of a term in all views and says how
// many there are.
func (s *search) gatherAll(t term) (df int, err error) {
	for i := range s.views {
		if err := s.gather(&s.views[i], i, t); err != nil {
			return 0, err
		}
		df += len(s.views[i].out)
	}
	delete(s.forms, t) // the next prefix may stand for as many
	return df, nil
}

// gather collects the live postings of a term into v.out, in any order.
func (s *search) gather(v *scored, number int, t term) error {
	v.out = v.out[:0]
	lists, err := s.lists(v, number, t)
	if err != nil {
		return err
	}
	if len(lists) == 1 {
		v.out, err = v.livePostings(v.out, lists[0], &s.cells.buf)
		return err
	}
	for _, l := range lists {
		if s.cells.tmp, err = v.livePostings(s.cells.tmp[:0], l, &s.cells.buf); err != nil {
			return err
		}
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
	return nil
}

// weigh adds the scores of the term in hand.
func (v *scored) weigh(weight, average float64) {
	const flat = k1 * (1 - b)
	weight *= k1 + 1
	slope := k1 * b / average
	for _, p := range v.out {
		if v.filter && !v.wants(p.ord) {
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

// hits takes the hits out of the arrays.
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

// lists returns the lists that a term stands for in a view.
func (s *search) lists(v *scored, number int, t term) ([]list, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	if !t.prefix {
		return v.wordLists(t.keys, s.lang)
	}
	if found, ok := s.forms[t]; ok {
		return found[number], nil
	}
	found, err := s.expand(t.keys[0])
	if err != nil {
		return nil, err
	}
	if s.forms == nil {
		s.forms = map[term][][]list{}
	}
	s.forms[t] = found
	return found[number], nil
}

// expand finds what a prefix stands for: by view, the lists of the first
// maxForms forms that a live document has. Forms of dead documents do not
// count, so that a merge changes nothing.
func (s *search) expand(prefix string) ([][]list, error) {
	const round = 256
	found := make([][]list, len(s.views))
	limit := min(maxForms, maxAllForms-s.taken)
	taken := 0
	defer func() { s.taken += taken }()
	for after := ""; ; {
		if err := s.ctx.Err(); err != nil {
			return nil, err
		}
		type place struct {
			view int
			list
		}
		var places []place
		horizon := "" // beyond it some view has not been asked
		for i := range s.views {
			lists, err := s.views[i].prefixLists(prefix, after, round)
			if err != nil {
				return nil, err
			}
			for _, l := range lists {
				places = append(places, place{i, l})
			}
			if len(lists) == round && (horizon == "" || lists[round-1].form < horizon) {
				horizon = lists[round-1].form
			}
		}
		slices.SortFunc(places, func(a, b place) int { return strings.Compare(a.form, b.form) })
		for i := 0; i < len(places); {
			if horizon != "" && places[i].form > horizon {
				break
			}
			end, live := i, false
			for ; end < len(places) && places[end].form == places[i].form; end++ {
				if live {
					continue
				}
				var err error
				if live, err = s.views[places[end].view].hasLive(places[end].list, &s.cells.tmp, &s.cells.buf); err != nil {
					return nil, err
				}
			}
			if live {
				if taken == limit {
					s.cut = true
					return found, nil
				}
				taken++
				for _, p := range places[i:end] {
					found[p.view] = append(found[p.view], p.list)
				}
			}
			i = end
		}
		if horizon == "" {
			return found, nil
		}
		after = horizon
	}
}

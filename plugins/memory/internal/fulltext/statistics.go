package fulltext

import "context"

// Statistics are what BM25 must know of some documents to weigh a query. Those
// of several indexes add up: a search with the sum ranks the documents of each
// as if all were in one index, and a text that is in none is scored like them.
type Statistics struct {
	docs  int
	words int64
	lang  *language
	terms []term
	found map[term]int // how many documents have it
}

// Statistics are those of the live documents, for one query.
func (x *Index) Statistics(ctx context.Context, text string) (Statistics, error) {
	snap, err := x.snapshot()
	if err != nil {
		return Statistics{}, err
	}
	defer snap.close()
	st := Statistics{docs: snap.docs, words: snap.tokens, lang: x.lang, terms: parseQuery(text, x.lang).terms, found: map[term]int{}}
	s := newSearch(ctx, x.lang, snap, &x.cells)
	defer s.close()
	for _, t := range st.terms {
		n, err := s.gatherAll(t)
		if err != nil {
			s.failed = true
			x.noteCorruption(err)
			return Statistics{}, err
		}
		st.found[t] = n
	}
	return st, ctx.Err()
}

// Add gives the statistics of both sets of documents for the same query. The
// zero value is that of none.
func (st Statistics) Add(other Statistics) Statistics {
	if st.lang == nil {
		return other
	}
	sum := Statistics{docs: st.docs + other.docs, words: st.words + other.words, lang: st.lang, terms: st.terms, found: map[term]int{}}
	for _, t := range st.terms {
		sum.found[t] = st.found[t] + other.found[t]
	}
	return sum
}

// weight is that of a term.
func (st Statistics) weight(t term) float64 { return idf(st.docs, min(st.found[t], st.docs)) }

// average is the length of a document.
func (st Statistics) average() float64 {
	if st.docs == 0 || st.words == 0 {
		return 1
	}
	return float64(st.words) / float64(st.docs)
}

// Score is what a document of these fields would get. Phrases count as their
// words.
func (st Statistics) Score(fields ...string) float64 {
	counts := make([]int, len(st.terms))
	length := 0
	var c wordCutter
	for _, field := range fields {
		c.cut(st.lang.normalize(field), 0, func(text []byte, w word) bool {
			if !w.unspaced && st.lang.isStop(text) {
				return true
			}
			length++
			st.count(st.lang.form(string(text)), counts)
			return length < maxDocumentWords
		})
	}
	const flat = k1 * (1 - b)
	score := 0.0
	for i, t := range st.terms {
		if tf := float64(counts[i]); tf > 0 {
			score += st.weight(t) * (k1 + 1) * tf / (tf + flat + k1*b*float64(length)/st.average())
		}
	}
	return score
}

// count counts the terms that a form matches.
func (st Statistics) count(form string, counts []int) {
	found := st.lang.keys(form)
	for i, t := range st.terms {
		if t.matches(form, found) {
			counts[i]++
		}
	}
}

// IDs are the documents of the index, in no order.
func (x *Index) IDs() ([]int64, error) {
	snap, err := x.snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.close()
	ids := make([]int64, 0, snap.docs)
	for _, v := range snap.views {
		for ord, id := range v.ids {
			if !v.dead.has(uint32(ord)) {
				ids = append(ids, id)
			}
		}
	}
	return ids, nil
}

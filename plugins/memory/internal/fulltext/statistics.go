package fulltext

import (
	"context"

	"github.com/the-edge-agent/tea/sdk/x/words"
)

// Statistics are the statistics of a set of documents that BM25 needs to weigh a query. A search with the sum of the
// statistics of several indexes ranks their documents as if they were in one index.
type Statistics struct {
	docs  int
	words int64
	lang  *words.Language
	terms []term
	found map[term]int // the number of documents with each term
}

// Statistics returns the statistics of the live documents for a query.
func (x *Index) Statistics(ctx context.Context, text string) (Statistics, error) {
	st := Statistics{lang: x.lang, terms: parseQuery(text, x.lang).terms, found: map[term]int{}}
	err := x.search(ctx, func(s *search) {
		st.docs, st.words = s.docs, s.words
		for _, t := range st.terms {
			_, st.found[t] = s.open(t)
		}
	})
	if err != nil {
		return Statistics{}, err
	}
	return st, nil
}

// Add returns the statistics of both sets of documents for the same query. The
// zero value is the empty set.
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

func (st Statistics) weight(t term) float64 { return idf(st.docs, min(st.found[t], st.docs)) }

func (st Statistics) average() float64 {
	if st.docs == 0 || st.words == 0 {
		return 1
	}
	return float64(st.words) / float64(st.docs)
}

// Counts are the numbers of occurrences of a query's terms in one text.
type Counts struct {
	terms  []int // nil if no term occurs
	length int
}

// Any reports whether a term occurs.
func (c Counts) Any() bool { return c.terms != nil }

// Counter counts the terms of a query in texts. Phrases count as their words. It
// caches the words that it has seen, and is not safe for concurrent use.
type Counter struct {
	st     Statistics
	cutter words.Cutter
	known  map[string][]int // the terms that a word matches
}

// maxKnown bounds the words that a Counter caches.
const maxKnown = 1 << 16

// Counter returns a counter of the query's terms.
func (st Statistics) Counter() *Counter { return &Counter{st: st, known: map[string][]int{}} }

// Count counts the terms in the fields of one text.
func (c *Counter) Count(fields ...string) (counts Counts) {
	for _, field := range fields {
		if c.st.lang == nil {
			break
		}
		c.cutter.Cut(c.st.lang.Normalize(field), 0, func(text []byte, w words.Word) bool {
			if !w.Unspaced && c.st.lang.IsStop(text) {
				return true
			}
			counts.length++
			for _, i := range c.matches(text) {
				if counts.terms == nil {
					counts.terms = make([]int, len(c.st.terms))
				}
				counts.terms[i]++
			}
			return counts.length < maxDocumentWords
		})
	}
	return counts
}

func (c *Counter) matches(text []byte) []int {
	if found, ok := c.known[string(text)]; ok {
		return found
	}
	if len(c.known) == maxKnown {
		clear(c.known)
	}
	var found []int
	form := c.st.lang.Form(string(text))
	k := c.st.lang.Keys(form)
	for i, t := range c.st.terms {
		if t.matches(form, k) {
			found = append(found, i)
		}
	}
	c.known[string(text)] = found
	return found
}

// Count returns the number of words of a document, without stop words.
func (t *Terms) Count(fields ...Field) int {
	counter := Statistics{lang: t.lang}.Counter()
	texts := make([]string, len(fields))
	for i, field := range fields {
		texts[i] = field.Text
	}
	return counter.Count(texts...).length
}

// Among returns the statistics of the same query with these texts as the
// documents.
func (st Statistics) Among(texts []Counts) Statistics {
	among := Statistics{docs: len(texts), lang: st.lang, terms: st.terms, found: map[term]int{}}
	for _, c := range texts {
		among.words += int64(c.length)
		for i, n := range c.terms {
			if n > 0 {
				among.found[st.terms[i]]++
			}
		}
	}
	return among
}

// Tagged returns the statistics for documents with a tag, which an index counts
// as a word.
func (st Statistics) Tagged() Statistics {
	st.words += int64(st.docs)
	return st
}

// Score returns the BM25 score of a text.
func (st Statistics) Score(c Counts) float64 {
	const flat = k1 * (1 - b)
	score := 0.0
	for i, n := range c.terms {
		if tf := float64(n); tf > 0 {
			score += st.weight(st.terms[i]) * (k1 + 1) * tf / (tf + flat + k1*b*float64(c.length)/st.average())
		}
	}
	return score
}

// IDs returns the documents of the index, unordered.
func (x *Index) IDs() ([]int64, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if err := x.usable(); err != nil {
		return nil, err
	}
	var ids []int64
	for _, p := range x.parts() {
		for ord, id := range p.ids {
			if !p.dead.has(uint32(ord)) {
				ids = append(ids, id)
			}
		}
	}
	return ids, nil
}

package words

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Query has the significant words of a question. Words such as "the" are left out; if
// there are no others, a text must have all of them. It is not safe for concurrent
// use.
type Query struct {
	// Words are distinct and sorted, at most [maxQuery].
	Words []string
	// All reports whether a text matches only if it has all words.
	All bool

	stems  []stems
	weak   []bool
	found  map[string]match
	starts map[string]bool
}

// maxQuery is the maximum number of words of a query; others are ignored.
const maxQuery = 100

// match is the match of a word.
type match struct {
	word   int // -1 for none
	weight float64
}

// formWeight is the weight of a match with another form of the word.
const formWeight = 0.8

// Weak is the largest weight of a match with a possible function word.
const Weak = 0.1

// NewQuery returns the query of a text.
func NewQuery(text string) *Query {
	words := Of(text)
	dropped, weak := functionWords(words)
	slices.Sort(words)
	words = slices.Compact(words)
	q := &Query{found: map[string]match{}, starts: map[string]bool{}}
	for _, word := range words {
		if !dropped[word] {
			q.Words = append(q.Words, word)
		}
	}
	if q.All = len(q.Words) == 0; q.All {
		q.Words = words
	}
	q.Words = q.Words[:min(len(q.Words), maxQuery)]
	for _, word := range q.Words {
		q.stems = append(q.stems, stemsOf(word))
		q.weak = append(q.weak, weak[word])
		q.starts[start(word)] = true
	}
	return q
}

// start returns the beginning that all forms of a word share.
func start(word string) string {
	n := 0
	for range 2 {
		_, size := utf8.DecodeRuneInString(word[n:])
		n += size
	}
	return word[:n]
}

// Keys returns the keys of [Index] for texts with a form of one of the words.
func (q *Query) Keys() []string {
	var all []string
	for i := range q.stems {
		all = append(all, q.stems[i][:]...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Match returns which word of the query a word is a form of, and the weight of the match;
// -1 for none.
func (q *Query) Match(word string) (i int, weight float64) {
	if !q.starts[start(word)] {
		return -1, 0
	}
	m, ok := q.found[word]
	if !ok {
		m = q.compare(word)
		q.found[word] = m
	}
	return m.word, m.weight
}

func (q *Query) compare(word string) match {
	m := match{word: -1}
	if i, ok := slices.BinarySearch(q.Words, word); ok {
		m = match{word: i, weight: 1}
	} else {
		stems := stemsOf(word)
		for i := range q.stems {
			if q.stems[i].match(&stems) {
				m = match{word: i, weight: formWeight}
				break
			}
		}
	}
	if m.word >= 0 && q.weak[m.word] {
		m.weight *= Weak
	}
	return m
}

// functionWordText has the function words of one language per line.
//
//go:embed function.txt
var functionWordText string

// functionWordLists has one set per language.
var functionWordLists = sync.OnceValue(func() (lists []map[string]bool) {
	for line := range strings.Lines(functionWordText) {
		list := map[string]bool{}
		for _, word := range Of(line) {
			list[word] = true
		}
		lists = append(lists, list)
	}
	return lists
})

// functionWords returns the words to leave out of a text: the function words of the
// language with most of them in it. If several languages tie, their words are weak
// instead, because "hat" and "die" are significant in English.
func functionWords(words []string) (dropped, weak map[string]bool) {
	most := 1
	var best []map[string]bool
	for _, list := range functionWordLists() {
		n := 0
		for _, word := range words {
			if list[word] {
				n++
			}
		}
		switch {
		case n > most, n == most && best == nil:
			most, best = n, []map[string]bool{list}
		case n == most:
			best = append(best, list)
		}
	}
	switch len(best) {
	case 0:
		return nil, nil
	case 1:
		return best[0], nil
	}
	// Words that are function words in all tied languages are left out.
	dropped, weak = map[string]bool{}, map[string]bool{}
	for _, list := range best {
		for word := range list {
			weak[word] = true
		}
	}
	for word := range weak {
		dropped[word] = !slices.ContainsFunc(best, func(list map[string]bool) bool { return !list[word] })
	}
	return dropped, weak
}

package words

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/sdk/x/words"
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
	weak   map[string]bool
	found  map[string]match
	starts map[rune]bool
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
	all := Of(text)
	likely := languagesOf(all)
	slices.Sort(all)
	all = slices.Compact(all)
	q := &Query{weak: map[string]bool{}, found: map[string]match{}, starts: map[rune]bool{}}
	for _, word := range all {
		n := 0
		for _, l := range likely {
			if isFunction(l, word) {
				n++
			}
		}
		if n == 0 || n < len(likely) {
			q.Words = append(q.Words, word)
			q.weak[word] = n > 0
		}
	}
	if q.All = len(q.Words) == 0; q.All {
		q.Words = all
	}
	q.Words = q.Words[:min(len(q.Words), maxQuery)]
	for _, word := range q.Words {
		q.stems = append(q.stems, stemsOf(word))
		q.starts[start(word)] = true
	}
	return q
}

// languagesOf returns the languages with most function words in a text. Words that are
// function words in each of them are left out. If only some have a word, it is weak,
// because "hat" and "die" are significant in English.
func languagesOf(list []string) (likely []*words.Language) {
	most := 1
	for _, l := range languages() {
		n := 0
		for _, word := range list {
			if isFunction(l, word) {
				n++
			}
		}
		if n > most {
			most, likely = n, nil
		}
		if n == most {
			likely = append(likely, l)
		}
	}
	return likely
}

// questions are further function words, which are significant in other texts than questions.
var questions = map[string]string{
	"english":    "whose",
	"german":     "dein deine welche welchem welchen welcher welches wem wen weshalb wessen woher wohin",
	"portuguese": "cuja cujo onde porque quais quanta quantas quanto quantos uns voces",
	"spanish":    "cuales quienes",
	"french":     "comment pourquoi quels quoi",
	"italian":    "quali quanti",
	"turkish":    "kimin nereden nereye nicin",
}

func isFunction(l *words.Language, word string) bool {
	return l.IsStop([]byte(word)) || slices.Contains(strings.Fields(questions[l.Name]), word)
}

// start returns the letter with which all forms of a word begin.
func start(word string) rune {
	r, _ := utf8.DecodeRuneInString(word)
	return r
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
	if m.word >= 0 && q.weak[q.Words[m.word]] {
		m.weight *= Weak
	}
	return m
}

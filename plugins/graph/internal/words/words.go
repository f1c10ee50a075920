// Package words finds the words of texts, and matches the words of a query in any form.
// The language of an entity or a question is unknown, so a word has a stem in each of
// several languages. Start with [Of], [Index] and [Query].
package words

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/sdk/x/words"
)

// Version identifies the keys of [Index]. A graph with keys of another version must be
// indexed again.
func Version() string { return "1/" + words.Analysis() + "/snowball-" + words.StemsVersion }

// languages have function words. Those before stemmed have stems, too.
var languages = sync.OnceValue(func() (all []*words.Language) {
	for _, name := range []string{"english", "german", "portuguese", "spanish", "french", "italian", "turkish"} {
		if l, err := words.New(name); err == nil {
			all = append(all, l)
		}
	}
	return all
})

// stemmed is the number of languages with stems.
const stemmed = 3

// Of returns the words of a text in order, with repetitions: runs of letters and
// digits in lower case, without accents, and emoji. Scripts without spaces, such as
// Chinese, yield pairs of characters, and so does Korean, whose words have particles.
func Of(text string) []string { return split(text, false) }

// All returns the words of [Of], and each Chinese, kanji or Korean character, which may be
// a word. It is for searched texts, not for queries.
func All(text string) []string { return split(text, true) }

func split(text string, characters bool) (all []string) {
	var c words.Cutter
	c.Cut(languages()[0].Normalize(text), 0, func(found []byte, w words.Word) bool {
		word := string(found)
		if folded := words.Fold(word); folded != "" && (!w.Single || w.Isolated) {
			all = append(all, folded)
		}
		if characters && w.Unspaced && !w.Isolated {
			if r, size := utf8.DecodeRuneInString(word); unicode.In(r, unicode.Han, unicode.Hangul) {
				all = append(all, word[:size])
			}
		}
		return true
	})
	return all
}

// SplitName inserts spaces between the words of a name such as maintainedBy.
func SplitName(name string) string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		if lower && unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		lower = unicode.IsLower(r)
		b.WriteRune(r)
	}
	return b.String()
}

// stems are the stems of a word in each language.
type stems [stemmed]string

// stemsOf returns the stems of a word of [Of]. A word of fewer than three bytes is its
// own stem.
func stemsOf(word string) (all stems) {
	for i := range all {
		if all[i] = word; len(word) >= 3 {
			all[i] = languages()[i].Keys(word)[0]
		}
	}
	return all
}

// match reports whether words with these stems are forms of one word.
func (s *stems) match(other *stems) bool {
	for i := range s {
		if s[i] == other[i] {
			return true
		}
	}
	return false
}

// maxKnown bounds the words whose keys an Index remembers.
const maxKnown = 20_000

// Index computes the keys of texts. It caches the keys of words, which repeat. The zero
// value is ready for use. It is not safe for concurrent use.
type Index struct{ known map[string][]string }

// Keys returns the keys by which full-text search finds texts: the stems of their words,
// sorted and distinct.
func (x *Index) Keys(texts ...string) []string {
	var all []string
	for _, text := range texts {
		for _, word := range All(text) {
			all = append(all, x.keys(word)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (x *Index) keys(word string) []string {
	keys, ok := x.known[word]
	if !ok {
		if x.known == nil || len(x.known) >= maxKnown {
			x.known = map[string][]string{}
		}
		found := stemsOf(word)
		keys = found[:]
		slices.Sort(keys)
		keys = slices.Clip(slices.Compact(keys))
		x.known[word] = keys
	}
	return keys
}

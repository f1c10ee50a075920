package words

import (
	"slices"
	"strings"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/portuguese"
)

// stems are the stems of a word in each language.
type stems [len(languages)]string

// language has a stemmer, and the endings and letters that are replaced before stemming.
// Words have no accents, because people often omit them.
type language struct {
	stem     func(*snowballstem.Env) bool
	endings  [][2]string
	spelling *strings.Replacer
}

// languages are the languages whose word forms match each other. The language of an
// entity or a question is unknown, so a word has a stem in each.
var languages = [...]language{
	{stem: english.Stem},
	{stem: german.Stem, spelling: strings.NewReplacer("ae", "a", "oe", "o", "ue", "u")},
	{stem: portuguese.Stem, endings: [][2]string{
		{"oes", "ao"}, {"aes", "ao"}, {"aos", "ao"}, {"ais", "al"}, {"ois", "ol"}, {"uis", "ul"}, {"eis", "l"}, {"is", "l"}, {"el", "l"}, {"il", "l"}, {"ns", "m"},
	}},
}

// stemsOf returns the stems of a word of [Of]. A word of fewer than three letters, or with
// digits or letters of other scripts, is its own stem.
func stemsOf(word string) (all stems) {
	plain := len(word) >= 3
	for i := 0; i < len(word) && plain; i++ {
		plain = word[i] >= 'a' && word[i] <= 'z'
	}
	for i := range languages {
		if all[i] = word; plain {
			all[i] = languages[i].stemOf(word)
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

func (l *language) stemOf(word string) (stem string) {
	if l.spelling != nil {
		word = l.spelling.Replace(word)
	}
	for _, e := range l.endings {
		if rest, ok := strings.CutSuffix(word, e[0]); ok && len(rest) > 1 {
			word = rest + e[1]
			break
		}
	}
	// The stemmers are generated code, which may panic on unusual words.
	defer func() {
		if recover() != nil {
			stem = word
		}
	}()
	env := snowballstem.NewEnv(word)
	l.stem(env)
	if s := env.Current(); s != "" {
		return s
	}
	return word
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

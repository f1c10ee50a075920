package words

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/the-edge-agent/tea/sdk/x/words/snowball"
)

// DefaultLanguage is the language used if none is named.
const DefaultLanguage = "english"

// StemsVersion is the version of the stems. An index with other stems must be rewritten.
const StemsVersion = snowball.Version

// analysisVersion counts the changes to folding, word boundaries and stop words.
const analysisVersion = 3

// Analysis identifies the analysis of words without their stems: folding, word
// boundaries, stop words and the Unicode tables. An index with another one must be
// rebuilt.
func Analysis() string {
	return fmt.Sprintf("%d/unicode-%s/norm-%s", analysisVersion, unicode.Version, norm.Version)
}

// Languages returns the languages that [New] accepts, sorted. "none" and
// "simple" neither stem words nor drop stop words.
func Languages() []string {
	return slices.Sorted(slices.Values(append(snowball.Languages(), "none", "simple")))
}

// stopWordText holds the function words of each language under its name in
// brackets.
//
//go:embed stopwords.txt
var stopWordText string

// Language has the stop words and the stemmer of one language. It is safe for
// concurrent use.
type Language struct {
	Name string
	// Stem returns the stem of a word as spelled; nil if words are not stemmed.
	Stem func(word string) string
	stop map[string]struct{}
}

// New returns the language with a name, "" for [DefaultLanguage].
func New(name string) (*Language, error) {
	if name == "" {
		name = DefaultLanguage
	}
	if !slices.Contains(Languages(), name) {
		return nil, fmt.Errorf("the language %q is not supported; use one of %s", name, strings.Join(Languages(), ", "))
	}
	l := &Language{Name: name, Stem: snowball.Stemmer(name), stop: map[string]struct{}{}}
	list := name
	if list == "porter" {
		list = "english"
	}
	_, after, _ := strings.Cut(stopWordText, "["+list+"]\n")
	words, _, _ := strings.Cut(after, "[")
	var c Cutter
	c.Cut(l.Normalize(words), 0, func(text []byte, _ Word) bool {
		l.stop[string(text)], l.stop[Fold(string(text))] = struct{}{}, struct{}{}
		return true
	})
	return l, nil
}

// IsStop reports whether a normalized word is a stop word. A word with accents is a stop word only in the spelling of
// the list.
func (l *Language) IsStop(text []byte) bool {
	_, ok := l.stop[string(text)]
	return ok
}

// Normalize returns the text in lower case and in Unicode's compatibility
// composition (NFKC). ASCII is returned unchanged; the cutter lowers it.
func (l *Language) Normalize(text string) string {
	turkish := l.Name == "turkish" && strings.ContainsAny(text, "Iİ")
	if isASCII(text) && !turkish {
		return text
	}
	return strings.Map(func(r rune) rune {
		switch {
		case turkish:
			return unicode.TurkishCase.ToLower(r)
		case r == 'ς':
			return 'σ'
		}
		return unicode.ToLower(r)
	}, norm.NFKC.String(text))
}

const (
	// Literal begins a form that is its own key.
	Literal = "\x02"
	// spelled separates a form from the spelling that its stem depends on.
	spelled = "\x01"
)

// Form returns the form of a normalized word: the word without accents, followed
// by its spelling if that has a different stem.
func (l *Language) Form(text string) string {
	if isASCII(text) || strings.HasPrefix(text, Literal) {
		return text
	}
	folded := Fold(text)
	if folded == "" {
		return text // accents only
	}
	if l.Stem == nil || folded == text || Fold(l.stemOf(text)) == l.plainStem(folded) {
		return folded
	}
	return folded + spelled + text
}

// Folded returns a form without its spelling.
func Folded(form string) string {
	folded, _, _ := strings.Cut(form, spelled)
	return folded
}

// Keys are the keys of a form: the stem of the word as spelled, and the stem of
// the word without accents, "" if it is the same.
type Keys [2]string

func (k Keys) has(key string) bool { return key != "" && (k[0] == key || k[1] == key) }

// Meet reports whether two forms have a key in common.
func (k Keys) Meet(other Keys) bool { return k.has(other[0]) || k.has(other[1]) }

// Keys returns the keys of a form. Accents are removed from its stem, never
// before stemming: the stemmers rely on them. The second key finds a word
// where either the text or the query was typed without accents.
func (l *Language) Keys(form string) Keys {
	if strings.HasPrefix(form, Literal) {
		return Keys{form}
	}
	folded, spelling, accented := strings.Cut(form, spelled)
	plain := l.plainStem(folded)
	if !accented {
		return Keys{plain}
	}
	stem := Fold(l.stemOf(spelling))
	if stem == "" || stem == plain {
		return Keys{plain}
	}
	return Keys{stem, plain}
}

func (l *Language) plainStem(folded string) string {
	if stem := Fold(l.stemOf(l.respell(folded))); stem != "" {
		return stem
	}
	return folded
}

// respellings are endings, by language, as typed without accents and as the
// stemmer expects them.
var respellings = map[string][][2]string{
	"portuguese": {
		{"coes", "ções"},
		{"cao", "ção"},
		{"oes", "ões"},
		{"aos", "ãos"},
		{"ao", "ão"},
		{"encias", "ências"},
		{"encia", "ência"},
		{"aveis", "áveis"},
		{"avel", "ável"},
		{"iveis", "íveis"},
		{"ivel", "ível"},
	},
	"spanish": {{"cion", "ción"}, {"logias", "logías"}, {"logia", "logía"}},
}

// plurals are endings, by language, that the stemmer does not unify. Only the l of -el, -il and -eis remains, because
// the plural does not show the vowel.
var plurals = map[string][][2]string{
	"portuguese": {
		{"ões", "ão"},
		{"ães", "ão"},
		{"ãos", "ão"},
		{"eses", "ês"},
		{"ês", "ês"},
		{"áveis", "ável"},
		{"ável", "ável"},
		{"íveis", "ível"},
		{"ível", "ível"},
		{"ais", "al"},
		{"óis", "ol"},
		{"uis", "ul"},
		{"éis", "l"},
		{"eis", "l"},
		{"is", "l"},
		{"el", "l"},
		{"il", "l"},
		{"ns", "m"},
		{"res", "r"},
		{"zes", "z"},
		{"as", "a"},
		{"ás", "á"},
		{"ãs", "ã"},
		{"es", "e"},
		{"és", "é"},
		{"os", "o"},
		{"ós", "ó"},
		{"us", "us"},
	},
	"spanish": {{"ces", "z"}},
}

// ending replaces the first matching ending of a word.
func ending(text string, endings [][2]string) string {
	for _, e := range endings {
		if rest, ok := strings.CutSuffix(text, e[0]); ok && (len(rest) > 1 || e[0][0] >= utf8.RuneSelf) {
			return rest + e[1]
		}
	}
	return text
}

// respell restores accents in a word that was typed without them, where the
// ending makes them likely.
func (l *Language) respell(folded string) string {
	if l.Name == "german" {
		return respellGerman(folded)
	}
	return ending(folded, respellings[l.Name])
}

// respellGerman replaces ae, oe and ue with umlauts. In aue, eue and que the u
// belongs to the letter before.
func respellGerman(folded string) string {
	if !strings.Contains(folded, "e") {
		return folded
	}
	var b strings.Builder
	before := byte(0)
	for i := 0; i < len(folded); i++ {
		c := folded[i]
		if i+1 < len(folded) && folded[i+1] == 'e' {
			umlaut := map[byte]string{'a': "ä", 'o': "ö", 'u': "ü"}[c]
			if umlaut != "" && (c != 'u' || before != 'a' && before != 'e' && before != 'q') {
				b.WriteString(umlaut)
				i++
				before = 'e'
				continue
			}
		}
		b.WriteByte(c)
		before = c
	}
	return b.String()
}

// stemOf returns the stem of a word. A word with digits or symbols and a pair of
// characters is its own stem.
func (l *Language) stemOf(text string) (stem string) {
	if l.Stem == nil {
		return text
	}
	for _, r := range text {
		if r <= '9' || isUnspaced(r) || isSymbol(r) {
			return text
		}
	}
	text = ending(text, plurals[l.Name])
	// The stemmers are generated code and can panic on unusual words.
	defer func() {
		if recover() != nil {
			stem = text
		}
	}()
	if s := l.Stem(text); s != "" && len(s) <= 2*MaxBytes {
		return s
	}
	return text
}

// Fold returns a normalized word without accents.
//
// Marks of Latin, Greek, Cyrillic, Hebrew and Arabic are accents. Marks of other scripts, which are vowels, stay; so
// does the breve of й, which is a letter of its alphabet.
func Fold(text string) string {
	if isASCII(text) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	before := rune(0)
	for _, r := range norm.NFKD.String(text) {
		if isAccent(r) && (r != breve || before != 'и') {
			continue
		}
		before = r
		if s, ok := plainLetters[r]; ok {
			b.WriteString(s)
			continue
		}
		b.WriteRune(r)
	}
	return norm.NFC.String(b.String())
}

const breve = '\u0306'

func isAccent(r rune) bool {
	switch {
	case r >= 0x0300 && r <= 0x036F, // combining diacritical marks
		r == 0x0640, // the Arabic tatweel
		r >= 0x1AB0 && r <= 0x1AFF, r >= 0x1DC0 && r <= 0x1DFF, r >= 0x20D0 && r <= 0x20FF, r >= 0xFE20 && r <= 0xFE2F:
		return true
	case r >= 0x0591 && r <= 0x05C7, // Hebrew points
		r >= 0x0610 && r <= 0x061A, r >= 0x064B && r <= 0x065F, r == 0x0670, r >= 0x06D6 && r <= 0x06ED: // Arabic
		return unicode.Is(unicode.Mn, r)
	}
	return false
}

// plainLetters are letters that do not decompose.
var plainLetters = map[rune]string{
	'ß': "ss", 'æ': "ae", 'œ': "oe", 'ø': "o", 'ł': "l", 'đ': "d", 'ð': "d", 'þ': "th", 'ħ': "h", 'ŧ': "t", 'ı': "i", 'ς': "σ",
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

package fulltext

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext/snowball"
)

// DefaultLanguage is the language used if [Options] do not name one.
const DefaultLanguage = "english"

// analysisVersion counts the changes to folding, word boundaries and stop words. An
// index of another version is rebuilt. Segments with the stems of another version of
// Snowball are rewritten; see restemmed.
const analysisVersion = 3

// analysisName identifies the analysis of words, including the Unicode tables.
func analysisName() string {
	return fmt.Sprintf("%d/unicode-%s/norm-%s", analysisVersion, unicode.Version, norm.Version)
}

// Languages returns the languages that [Options] accept, sorted. "none" and
// "simple" neither stem words nor drop stop words.
func Languages() []string {
	return slices.Sorted(slices.Values(append(snowball.Languages(), "none", "simple")))
}

// stopWordText holds the function words of each language under its name in
// brackets.
//
//go:embed stopwords.txt
var stopWordText string

// language has the stop words and the stemmer of one language. It is immutable.
type language struct {
	name  string
	stop  map[string]struct{}
	stems func(string) string // nil = words are not stemmed
}

// newLanguage returns the language with a name, "" for the default.
func newLanguage(name string) (*language, error) {
	if name == "" {
		name = DefaultLanguage
	}
	if !slices.Contains(Languages(), name) {
		return nil, fmt.Errorf("the language %q is not supported; use one of %s", name, strings.Join(Languages(), ", "))
	}
	l := &language{name: name, stems: snowball.Stemmer(name), stop: map[string]struct{}{}}
	list := name
	if list == "porter" {
		list = "english"
	}
	_, after, _ := strings.Cut(stopWordText, "["+list+"]\n")
	words, _, _ := strings.Cut(after, "[")
	var c wordCutter
	c.cut(l.normalize(words), 0, func(text []byte, _ word) bool {
		l.stop[string(text)], l.stop[fold(string(text))] = struct{}{}, struct{}{}
		return true
	})
	return l, nil
}

// isStop reports whether a normalized word is a stop word. A word with accents is a stop word only in the spelling of
// the list.
func (l *language) isStop(text []byte) bool {
	_, ok := l.stop[string(text)]
	return ok
}

// normalize returns the text in lower case and in Unicode's compatibility
// composition (NFKC). ASCII is returned unchanged; the cutter lowers it.
func (l *language) normalize(text string) string {
	turkish := l.name == "turkish" && strings.ContainsAny(text, "Iİ")
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

// spelled separates a form from the spelling that its stem depends on.
const spelled = "\x01"

// form returns the form of a normalized word: the word without accents, followed
// by its spelling if that has a different stem.
func (l *language) form(text string) string {
	if isASCII(text) || strings.HasPrefix(text, tagged) {
		return text
	}
	folded := fold(text)
	if folded == "" {
		return text // accents only
	}
	if l.stems == nil || folded == text || fold(l.stemOf(text)) == l.plainStem(folded) {
		return folded
	}
	return folded + spelled + text
}

// keys are the keys of a form: the stem of the word as spelled, and the stem of
// the word without accents, "" if it is the same.
type keys [2]string

func (k keys) has(key string) bool { return key != "" && (k[0] == key || k[1] == key) }

func (k keys) meet(other keys) bool { return k.has(other[0]) || k.has(other[1]) }

// keys returns the keys of a form. Accents are removed from its stem, never
// before stemming: the stemmers rely on them. The second key finds a word
// where either the text or the query was typed without accents.
func (l *language) keys(form string) keys {
	if strings.HasPrefix(form, tagged) {
		return keys{form}
	}
	folded, spelling, accented := strings.Cut(form, spelled)
	plain := l.plainStem(folded)
	if !accented {
		return keys{plain}
	}
	stem := fold(l.stemOf(spelling))
	if stem == "" || stem == plain {
		return keys{plain}
	}
	return keys{stem, plain}
}

func (l *language) plainStem(folded string) string {
	if stem := fold(l.stemOf(l.respell(folded))); stem != "" {
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
func (l *language) respell(folded string) string {
	if l.name == "german" {
		return respellGerman(folded)
	}
	return ending(folded, respellings[l.name])
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
func (l *language) stemOf(text string) (stem string) {
	if l.stems == nil {
		return text
	}
	for _, r := range text {
		if r <= '9' || isUnspaced(r) || isSymbol(r) {
			return text
		}
	}
	text = ending(text, plurals[l.name])
	// The stemmers are generated code and can panic on unusual words.
	defer func() {
		if recover() != nil {
			stem = text
		}
	}()
	if s := l.stems(text); s != "" && len(s) <= 2*maxFormBytes {
		return s
	}
	return text
}

// fold returns a normalized word without accents.
//
// Marks of Latin, Greek, Cyrillic, Hebrew and Arabic are accents. Marks of other scripts, which are vowels, stay; so
// does the breve of й, which is a letter of its alphabet.
func fold(text string) string {
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

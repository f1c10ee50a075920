package fulltext

import (
	"cmp"
	"sort"
	"strings"

	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/sdk/x/words"
)

// The limits of a query. The rest of a longer query is ignored, and [Ranked.Cut]
// reports it.
const (
	maxQueryBytes = 16 << 10
	maxTerms      = 64
	maxPrefixes   = 16
	maxPhrases    = 16
	maxPhrase     = 64   // in positions, including stop words
	maxForms      = 1024 // forms of one prefix
	maxAllForms   = 4096 // forms of all prefixes
)

// term is a part of a query: the forms of a word, or the forms that begin with a
// prefix, which is then the only key.
type term struct {
	keys   words.Keys
	prefix bool
}

func (t term) matches(form string, found words.Keys) bool {
	if t.prefix {
		return strings.HasPrefix(form, t.keys[0])
	}
	return t.keys.Meet(found)
}

// phraseTerm is a term at a position of a phrase.
type phraseTerm struct {
	term
	offset uint32 // from the first term
}

// query is a parsed query. Its terms are sorted, so that scores are summed in the
// same order whatever the order of the words.
type query struct {
	terms   []term
	phrases [][]phraseTerm
	cut     bool
}

// parseQuery reads words, "phrases" and prefixes*. Anything else, such as an unmatched quotation mark, is ignored.
func parseQuery(text string, lang *words.Language) query {
	p := queryParser{lang: lang, seen: map[term]bool{}}
	if len(text) > maxQueryBytes {
		text, p.query.cut = text[:value.WholeRunes(text[:maxQueryBytes])], true
	}
	text = quotes.Replace(text)
	for text != "" {
		before, after, quoted := strings.Cut(text, `"`)
		p.words(before)
		if !quoted {
			break
		}
		phrase, rest, closed := strings.Cut(after, `"`)
		if closed {
			p.phrase(phrase)
		} else {
			p.words(phrase)
		}
		text = rest
	}
	sort.Slice(p.query.terms, func(i, j int) bool {
		a, b := p.query.terms[i], p.query.terms[j]
		if a.prefix != b.prefix {
			return b.prefix
		}
		return cmp.Or(cmp.Compare(a.keys[0], b.keys[0]), cmp.Compare(a.keys[1], b.keys[1])) < 0
	})
	return p.query
}

var quotes = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`)

type queryParser struct {
	lang     *words.Language
	cutter   words.Cutter
	query    query
	seen     map[term]bool
	prefixes int
}

func (p *queryParser) words(text string) {
	for _, item := range strings.Fields(text) {
		for _, piece := range strings.SplitAfter(item, "*") {
			head, star := strings.CutSuffix(p.lang.Normalize(piece), "*")
			var terms []term
			p.cutter.Cut(head, 0, func(text []byte, w words.Word) bool {
				// The last word before the star is the prefix.
				prefix := star && w.End == len(head)
				if t, ok := p.term(text, w, prefix); ok {
					terms = append(terms, t)
				}
				return len(terms) <= maxTerms
			})
			for _, t := range terms {
				p.add(t)
			}
		}
	}
}

func (p *queryParser) term(text []byte, w words.Word, prefix bool) (term, bool) {
	switch {
	case w.Single && !w.Isolated:
		return term{}, false // the pair before contains it
	case w.Isolated, prefix:
		folded := words.Folded(p.lang.Form(string(text)))
		return term{keys: words.Keys{folded}, prefix: true}, true
	case w.Unspaced:
		return term{keys: words.Keys{string(text)}}, true
	case p.lang.IsStop(text):
		return term{}, false
	}
	return term{keys: p.lang.Keys(p.lang.Form(string(text)))}, true
}

func (p *queryParser) add(t term) bool {
	if p.seen[t] {
		return true
	}
	if len(p.query.terms) == maxTerms || t.prefix && p.prefixes == maxPrefixes {
		p.query.cut = true
		return false
	}
	if t.prefix {
		p.prefixes++
	}
	p.seen[t] = true
	p.query.terms = append(p.query.terms, t)
	return true
}

// phrase reads the text between quotation marks. Its words must be adjacent and count like other words. A stop word
// takes a position.
func (p *queryParser) phrase(text string) {
	if len(p.query.phrases) == maxPhrases {
		p.query.cut = true
		return
	}
	var phrase []phraseTerm
	begin := 0
	p.cutter.Cut(p.lang.Normalize(text), 0, func(text []byte, w words.Word) bool {
		if w.Pos >= maxPhrase {
			p.query.cut = true
			return false
		}
		t, ok := p.term(text, w, false)
		if !ok {
			return true
		}
		if p.add(t) {
			if len(phrase) == 0 {
				begin = w.Pos // leading stop words have no effect
			}
			phrase = append(phrase, phraseTerm{t, uint32(w.Pos - begin)})
		}
		return true
	})
	if len(phrase) > 0 {
		p.query.phrases = append(p.query.phrases, phrase)
	}
}

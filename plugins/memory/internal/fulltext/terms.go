package fulltext

import (
	"cmp"
	"strings"

	"github.com/the-edge-agent/tea/sdk/x/words"
)

// StemsVersion is the version of the stems in [Words] and in queries.
const StemsVersion = words.StemsVersion

// Terms analyzes texts and queries for an index that another program keeps, such
// as the full-text search of a database. It is immutable.
type Terms struct{ lang *words.Language }

// NewTerms returns the analysis of a language, "" for [words.DefaultLanguage].
func NewTerms(language string) (*Terms, error) {
	lang, err := words.New(language)
	if err != nil {
		return nil, err
	}
	return &Terms{lang}, nil
}

// Beginnings returns a prefix for each word of a query, which its other forms share. With them, rows that have the
// stems of another version are found by their forms. A language without stems has none.
func (t *Terms) Beginnings(text string) (all []string) {
	if t.lang.Stem == nil {
		return nil
	}
	var cutter words.Cutter
	cutter.Cut(t.lang.Normalize(text), 0, func(text []byte, w words.Word) bool {
		if w.Single && !w.Isolated || !w.Unspaced && t.lang.IsStop(text) {
			return true
		}
		form := t.lang.Form(string(text))
		folded, keys := words.Folded(form), t.lang.Keys(form)
		shared := folded[:max(sharedBytes(folded, keys[0]), sharedBytes(folded, keys[1]))]
		all = append(all, cmp.Or(strings.ToValidUTF8(shared, ""), folded))
		return len(all) < maxTerms
	})
	return all
}

// Language returns the name of the language.
func (t *Terms) Language() string { return t.lang.Name }

// The tokens that do not stand for a word.
const (
	// Gap stands for a stop word.
	Gap = "_"
	// Break separates the fields of a document. It does not occur in queries.
	Break = "__"
)

// Words are the words of a document as lists of tokens, separated by spaces. A
// token consists of ASCII letters and digits and of characters outside of ASCII,
// or is Gap or Break.
type Words struct {
	// Stems are the stems of all words in their order.
	Stems string
	// Spelled are the additional stems of words that are spelled with accents.
	Spelled string
	// Forms are the words without accents, each once. Prefixes match them.
	Forms string
}

// Document returns the words of a document. Each list has at most maxBytes;
// further words are left out.
func (t *Terms) Document(maxBytes int, fields ...Field) Words {
	var cutter words.Cutter
	var stems, others, forms tokens
	seen := map[string]bool{}
	for _, field := range fields {
		cutter.Cut(t.lang.Normalize(field.Text), 0, func(text []byte, w words.Word) bool {
			if !w.Unspaced && t.lang.IsStop(text) {
				return stems.add(Gap, maxBytes)
			}
			form := t.lang.Form(string(text))
			found := t.lang.Keys(form)
			if form = words.Folded(form); !seen[form] {
				seen[form] = true
				forms.add(form, maxBytes)
			}
			if found[1] == "" {
				return stems.add(found[0], maxBytes)
			}
			others.add(found[0], maxBytes)
			return stems.add(found[1], maxBytes)
		})
		stems.add(Break, maxBytes)
	}
	return Words{Stems: stems.String(), Spelled: others.String(), Forms: forms.String()}
}

type tokens struct{ strings.Builder }

func (l *tokens) add(token string, maxBytes int) bool {
	if l.Len()+len(token)+1 > maxBytes {
		return false
	}
	if l.Len() > 0 {
		l.WriteByte(' ')
	}
	l.WriteString(token)
	return true
}

// Query is a parsed query. A document matches if it contains any of the words or
// prefixes, and all of the phrases. The words of the phrases are among Words.
type Query struct {
	// Words have one or two stems each; a document must contain one of them.
	Words    [][]string
	Prefixes []string
	// Phrases are adjacent stems, with Gap for a stop word.
	Phrases [][]string
	// Cut reports whether a part of the query was ignored because of its size.
	Cut bool
}

// Each returns a separate query for each word and each prefix of a query.
func (t *Terms) Each(text string) []Query {
	terms := parseQuery(text, t.lang).terms
	all := make([]Query, len(terms))
	for i, one := range terms {
		all[i].add(one)
	}
	return all
}

// Statistics returns the statistics of a query for another program's index. docs is the number of documents, words the
// number of their words without stop words, and found the number of documents that each query of Each finds.
func (t *Terms) Statistics(text string, docs int, words int64, found []int) Statistics {
	st := Statistics{docs: docs, words: words, lang: t.lang, terms: parseQuery(text, t.lang).terms, found: map[term]int{}}
	for i, one := range st.terms {
		st.found[one] = found[i]
	}
	return st
}

func (q *Query) add(one term) {
	switch {
	case one.prefix:
		q.Prefixes = append(q.Prefixes, one.keys[0])
	case one.keys[1] == "":
		q.Words = append(q.Words, one.keys[:1])
	default:
		q.Words = append(q.Words, one.keys[:])
	}
}

// Query parses a query.
func (t *Terms) Query(text string) Query {
	parsed := parseQuery(text, t.lang)
	q := Query{Cut: parsed.cut}
	for _, one := range parsed.terms {
		q.add(one)
	}
	for _, terms := range parsed.phrases {
		var phrase []string
		for _, one := range terms {
			if one.prefix { // a single character of a script without spaces
				continue
			}
			for len(phrase) < int(one.offset) {
				phrase = append(phrase, Gap)
			}
			stem := one.keys[1]
			if stem == "" {
				stem = one.keys[0]
			}
			phrase = append(phrase, stem)
		}
		if len(phrase) > 0 {
			q.Phrases = append(q.Phrases, phrase)
		}
	}
	return q
}

package fulltext

import (
	"iter"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/sdk/x/words"
)

// outdated reports whether another version of the stemmers wrote the dictionary.
func (s *segment) outdated(lang *words.Language) bool {
	return lang.Stem != nil && s.Stems != words.StemsVersion
}

// restemmed searches an outdated segment by the current stems of its forms, until a merge has rewritten it.
// If the older stemmers did not store the accented spelling of a word, only its stem without accents is found.
type restemmed struct {
	*segment
	lang  *words.Language
	mu    sync.Mutex
	forms map[string][]string // by stem, ascending; nil until they are needed
}

func (r *restemmed) scan(prefix string) iter.Seq[list] {
	stem, byStem := strings.CutPrefix(prefix, stemMark)
	if !byStem {
		return r.segment.scan(prefix)
	}
	return func(yield func(list) bool) {
		for _, form := range r.withStem(strings.TrimSuffix(stem, "\x00")) {
			for l := range r.segment.scan(form) { // the form itself is first
				if l.key = prefix + form; !yield(l) {
					return
				}
				break
			}
		}
	}
}

// withStem returns the forms with a stem.
func (r *restemmed) withStem(stem string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forms == nil {
		forms := map[string][]string{}
		for l := range r.segment.scan("") {
			for _, stem := range r.lang.Keys(l.key) {
				if stem != "" {
					forms[stem] = append(forms[stem], l.key)
				}
			}
		}
		r.forms = forms
	}
	return r.forms[stem]
}

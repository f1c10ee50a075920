package fulltext

import (
	"iter"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext/snowball"
)

// outdated reports whether the dictionary has the stems of another version of the stemmers.
func (s *segment) outdated(lang *language) bool {
	return lang.stems != nil && s.Stems != snowball.Version
}

// restemmed finds the lists of an outdated segment by the current stems of its forms, until a merge has rewritten it.
// A word with accents whose spelling the older stemmers did not need has the stem without accents only.
type restemmed struct {
	*segment
	lang  *language
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
			for l := range r.segment.scan(form) { // the first list is that of the form
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
			for _, stem := range r.lang.keys(l.key) {
				if stem != "" {
					forms[stem] = append(forms[stem], l.key)
				}
			}
		}
		r.forms = forms
	}
	return r.forms[stem]
}

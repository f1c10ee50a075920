package fulltext

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/irish"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/porter"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/tamil"
	"github.com/blevesearch/snowballstem/turkish"
	"golang.org/x/text/unicode/norm"
)

// DefaultLanguage is the language of an index whose options name none.
const DefaultLanguage = "english"

// analysisVersion counts the changes of folding, cutting, stop words and
// stemming. An index of another version is built anew.
const analysisVersion = 1

// analysisName tells one way of making words from another, the Unicode tables
// included.
func analysisName() string {
	return fmt.Sprintf("%d/unicode-%s/norm-%s", analysisVersion, unicode.Version, norm.Version)
}

func stemmers() map[string]func(*snowballstem.Env) bool {
	return map[string]func(*snowballstem.Env) bool{
		"arabic": arabic.Stem, "danish": danish.Stem, "dutch": dutch.Stem,
		"english": english.Stem, "finnish": finnish.Stem, "french": french.Stem,
		"german": german.Stem, "hungarian": hungarian.Stem, "irish": irish.Stem,
		"italian": italian.Stem, "norwegian": norwegian.Stem, "porter": porter.Stem,
		"portuguese": portuguese.Stem, "romanian": romanian.Stem, "russian": russian.Stem,
		"spanish": spanish.Stem, "swedish": swedish.Stem, "tamil": tamil.Stem,
		"turkish": turkish.Stem,
		"none":    nil, "simple": nil,
	}
}

// Languages returns the names that [Options] takes, sorted. "none" and
// "simple" neither stem nor leave words out.
func Languages() []string {
	return slices.Sorted(maps.Keys(stemmers()))
}

// language knows the stop words and stems of one language. It is immutable.
type language struct {
	name  string
	stop  map[string]struct{}
	stems func(*snowballstem.Env) bool // nil: a word is its own stem
}

// newLanguage returns the language of that name, "" for the default.
func newLanguage(name string) (*language, error) {
	if name == "" {
		name = DefaultLanguage
	}
	stems, ok := stemmers()[name]
	if !ok {
		return nil, fmt.Errorf("the language %q is not known; known are %s", name, strings.Join(Languages(), ", "))
	}
	l := &language{name: name, stems: stems, stop: map[string]struct{}{}}
	var c wordCutter
	c.cut(foldText(stopWords(name)), 0, func(form []byte, _ word) bool {
		l.stop[string(form)] = struct{}{}
		return true
	})
	return l, nil
}

// isStop tells whether the form is left out.
func (l *language) isStop(form []byte) bool {
	_, ok := l.stop[string(form)]
	return ok
}

// stem returns the form's stem. Forms with digits and pairs of characters are
// their own.
func (l *language) stem(form string) (stem string) {
	if l.stems == nil {
		return form
	}
	for _, r := range form {
		if r <= '9' || isUnspaced(r) {
			return form
		}
	}
	// The stemmers are generated code and see hostile words here.
	defer func() {
		if recover() != nil {
			stem = form
		}
	}()
	env := snowballstem.NewEnv(form)
	l.stems(env)
	if s := env.Current(); s != "" && len(s) <= 2*maxFormBytes {
		return s
	}
	return form
}

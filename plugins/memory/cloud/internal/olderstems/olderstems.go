// Package olderstems has the stemmers of Snowball 2. Entries that earlier versions of tea wrote
// to servers are searched with these stems until they are written again.
package olderstems

import (
	"strings"

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

	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
)

// Of returns the older analysis of texts in the same language.
func Of(t *fulltext.Terms) *fulltext.Terms {
	run := map[string]func(*snowballstem.Env) bool{
		"arabic":     arabic.Stem,
		"danish":     danish.Stem,
		"dutch":      dutch.Stem,
		"english":    english.Stem,
		"finnish":    finnish.Stem,
		"french":     french.Stem,
		"german":     german.Stem,
		"hungarian":  hungarian.Stem,
		"irish":      irish.Stem,
		"italian":    italian.Stem,
		"norwegian":  norwegian.Stem,
		"porter":     porter.Stem,
		"portuguese": portuguese.Stem,
		"romanian":   romanian.Stem,
		"russian":    russian.Stem,
		"spanish":    spanish.Stem,
		"swedish":    swedish.Stem,
		"tamil":      tamil.Stem,
		"turkish":    turkish.Stem,
	}[t.Language()]
	return t.WithStems(func(word string) string {
		if t.Language() == "romanian" { // the stemmer only knows the letters with cedillas
			word = strings.NewReplacer("ș", "ş", "ț", "ţ").Replace(word)
		}
		env := snowballstem.NewEnv(word)
		run(env)
		return env.Current()
	})
}

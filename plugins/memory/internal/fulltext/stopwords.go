package fulltext

import (
	_ "embed"
	"strings"
)

// stopWordText holds the function words of each language under its name in
// brackets, spelled as usual: they are folded like every text.
//
//go:embed stopwords.txt
var stopWordText string

// stopWords returns the stop words of a language as a text, "" if it has none.
func stopWords(language string) string {
	if language == "porter" {
		language = "english"
	}
	_, after, _ := strings.Cut(stopWordText, "["+language+"]\n")
	words, _, _ := strings.Cut(after, "[")
	return words
}

package report

import (
	"strings"
	"unicode"
)

// Printable makes a text from outside harmless to a terminal: control
// characters, which could move the cursor or worse, and signs that turn the
// reading direction round become spaces. Line breaks and tabs stay.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if Harmful(r) {
			return ' '
		}
		return r
	}, text)
}

// Harmful tells whether a terminal may take a character for more than one to
// be shown; line breaks and tabs are not.
func Harmful(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true // they let a text look like another one
	}
	return unicode.IsControl(r)
}

// oneLine is [Printable] without line breaks.
func oneLine(text string) string {
	return strings.Join(strings.Fields(Printable(text)), " ")
}

package report

import (
	"testing"
	"unicode"

	"golang.org/x/text/width"
)

func TestWideCharactersAreThoseOfUnicode(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		kind := width.LookupRune(r).Kind()
		if got, want := unicode.Is(wideCharacters, r), kind == width.EastAsianWide || kind == width.EastAsianFullwidth; got != want {
			t.Errorf("%U is wide: %v, want %v", r, got, want)
		}
	}
}

package tokens

import (
	"errors"
	"sort"
	"unicode"
)

// Encoding estimates the number of tokens.
type Encoding struct{}

// Load always fails.
func Load(string) (*Encoding, error) { return nil, errors.New("a page has no files") }

// countSegment estimates the number of tokens of a segment, since the vocabulary of
// cl100k_base is too large for a page: one for each word or six letters of it, each
// other symbol, and each character of a script without an alphabet.
func (e *Encoding) countSegment(text string) int {
	n, letters := 0, 0
	for _, r := range text {
		switch {
		case r < 0x2E80 && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)):
			if letters++; letters%6 == 1 {
				n++
			}
			continue
		case !unicode.IsSpace(r):
			n++
		}
		letters = 0
	}
	return n
}

// tokensEnd returns the end of the first n tokens of a segment.
func (e *Encoding) tokensEnd(text string, n int) int {
	end := sort.Search(len(text), func(i int) bool { return e.countSegment(text[:i+1]) > n })
	return runeStart(text, end)
}

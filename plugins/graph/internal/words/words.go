// Package words splits texts into the words that full-text search finds. Start
// with [Of].
package words

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// maxWord is the length of a word in bytes; the rest of a longer one is ignored.
const maxWord = 64

// Of returns the words of a text in order, with repetitions: runs of letters and
// digits in lower case, without accents. Scripts without spaces, such as Chinese,
// yield pairs of characters.
func Of(text string) []string {
	var all []string
	var word []rune
	ideographs := false
	flush := func() {
		if len(word) > 0 && ideographs {
			all = appendPairs(all, word)
		} else if len(word) > 0 {
			all = append(all, cut(string(word)))
		}
		word = word[:0]
	}
	add := func(r rune) {
		if unbroken := isUnbroken(r); unbroken != ideographs {
			flush()
			ideographs = unbroken
		}
		word = append(word, r)
	}
	if isASCII(text) {
		for _, r := range text {
			switch {
			case 'A' <= r && r <= 'Z':
				add(r + 'a' - 'A')
			case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
				add(r)
			default:
				flush()
			}
		}
		flush()
		return all
	}
	for _, r := range norm.NFKD.String(text) {
		switch {
		case unicode.Is(unicode.Mn, r):
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			for _, folded := range fold(r) {
				add(folded)
			}
		default:
			flush()
		}
	}
	flush()
	return all
}

// Distinct returns the words of texts, sorted, each once.
func Distinct(texts ...string) []string {
	var all []string
	for _, text := range texts {
		all = append(all, Of(text)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}

// fold returns the letter in lower case, without what distinguishes it from a
// plain letter that users type instead of it.
func fold(r rune) string {
	switch r = unicode.ToLower(r); r {
	case 'ß':
		return "ss"
	case 'ø':
		return "o"
	case 'æ':
		return "ae"
	case 'œ':
		return "oe"
	case 'ł':
		return "l"
	case 'đ':
		return "d"
	case 'ı':
		return "i"
	case 'ς':
		return "σ"
	}
	return string(r)
}

// isUnbroken reports whether the script of a letter has no spaces.
func isUnbroken(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

func appendPairs(all []string, letters []rune) []string {
	if len(letters) == 1 {
		return append(all, string(letters))
	}
	for i := 1; i < len(letters); i++ {
		all = append(all, string(letters[i-1:i+1]))
	}
	return all
}

func cut(word string) string {
	if len(word) <= maxWord {
		return word
	}
	return strings.ToValidUTF8(word[:maxWord], "")
}

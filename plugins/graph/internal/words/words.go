// Package words splits texts into the words of full-text search, and matches the words
// of a query in any form. Start with [Of], [Index] and [Query].
package words

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// maxWord is the maximum length of a word in bytes; the rest of a word is ignored.
const maxWord = 64

// Of returns the words of a text in order, with repetitions: runs of letters and
// digits in lower case, without accents, and emoji. Scripts without spaces, such as
// Chinese, yield pairs of characters, and so does Korean, whose words have particles.
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
	for _, r := range norm.NFC.String(strings.Map(withoutMarks, norm.NFKD.String(text))) {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || isRegional(r):
			for _, folded := range fold(r) {
				add(folded)
			}
		case unicode.Is(unicode.So, r):
			flush()
			all = append(all, string(r))
		default:
			flush()
		}
	}
	flush()
	return all
}

// withoutMarks drops accents and invisible characters. The marks of kana stay, because
// they make other letters.
func withoutMarks(r rune) rune {
	switch {
	case r == '\u3099' || r == '\u309a':
		return r
	case unicode.Is(unicode.Mn, r), r == '\u00ad', r >= '\u200b' && r <= '\u200d', r == '\u2060', r == '\ufeff':
		return -1
	}
	return r
}

// isRegional reports whether r is half of a flag.
func isRegional(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }

// All returns the words of [Of], and each Chinese, kanji or Korean character, which may be
// a word. It is for searched texts, not for queries.
func All(text string) []string {
	all := Of(text)
	if isASCII(text) {
		return all
	}
	for _, r := range norm.NFC.String(text) {
		if unicode.In(r, unicode.Han, unicode.Hangul) {
			all = append(all, string(r))
		}
	}
	return all
}

// SplitName inserts spaces between the words of a name such as maintainedBy.
func SplitName(name string) string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		if lower && unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		lower = unicode.IsLower(r)
		b.WriteRune(r)
	}
	return b.String()
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}

// fold returns the letter in lower case, replaced by the plain letter that users type
// instead of it.
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

// isUnbroken reports whether the script of a letter does not separate words, or words
// and their particles, by spaces.
func isUnbroken(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
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

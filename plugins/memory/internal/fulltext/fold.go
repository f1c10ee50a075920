package fulltext

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// foldText returns the text in the form that is indexed: lower case, without
// accents, compatibility characters made plain. ASCII is returned as it is;
// the analyzer lowers it while it cuts words.
//
// Marks of Latin, Greek, Cyrillic, Hebrew and Arabic are accents and go. Marks
// of other scripts are vowels, and the breve of й makes another letter: both
// stay.
func foldText(text string) string {
	if isASCII(text) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	before := rune(0)
	for _, r := range norm.NFKD.String(text) {
		if r < utf8.RuneSelf {
			before = r
			b.WriteByte(lowerASCII(byte(r)))
			continue
		}
		if isAccent(r) {
			if r == breve && (before == 'и' || before == 'И') {
				b.WriteRune(r)
			}
			continue
		}
		before = r
		if s := foldLetter(r); s != "" {
			b.WriteString(s)
			continue
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return norm.NFC.String(b.String())
}

const breve = '\u0306'

// isAccent tells whether r is a mark that folding takes off.
func isAccent(r rune) bool {
	switch {
	case r >= 0x0300 && r <= 0x036F: // combining diacritical marks
		return true
	case r >= 0x0591 && r <= 0x05C7: // Hebrew points
		return unicode.Is(unicode.Mn, r)
	case r >= 0x0610 && r <= 0x061A, r >= 0x064B && r <= 0x065F, r == 0x0670, r >= 0x06D6 && r <= 0x06ED:
		return unicode.Is(unicode.Mn, r)
	case r == 0x0640: // the Arabic stretching stroke
		return true
	}
	return r >= 0x1AB0 && r <= 0x1AFF || r >= 0x1DC0 && r <= 0x1DFF || r >= 0x20D0 && r <= 0x20FF || r >= 0xFE20 && r <= 0xFE2F
}

// foldLetter gives the plain spelling of letters that do not decompose.
func foldLetter(r rune) string {
	switch r {
	case 'ß', 'ẞ':
		return "ss"
	case 'æ', 'Æ':
		return "ae"
	case 'œ', 'Œ':
		return "oe"
	case 'ø', 'Ø':
		return "o"
	case 'ł', 'Ł':
		return "l"
	case 'đ', 'Đ', 'ð', 'Ð':
		return "d"
	case 'þ', 'Þ':
		return "th"
	case 'ħ', 'Ħ':
		return "h"
	case 'ŧ', 'Ŧ':
		return "t"
	case 'ı':
		return "i"
	case 'ς':
		return "σ"
	}
	return ""
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func lowerASCII(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

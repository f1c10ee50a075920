package words

import (
	"unicode"
	"unicode/utf8"
)

// MaxBytes bounds a word. The rest of a longer word is ignored.
const MaxBytes = 64

// Word describes a word that the cutter finds in a text.
type Word struct {
	Pos      int  // counts every word of the text, stop words too
	Unspaced bool // a pair of characters, or the last character of a run
	Single   bool // unspaced, and the run's last character alone
	Isolated bool // single, and the run's only character
	End      int  // offset in the text after the word
}

// Cutter cuts a normalized text into words. The zero value is ready. It reuses its
// buffer, so it is not safe for concurrent use.
type Cutter struct {
	buf []byte
}

// Cut calls visit for each word of a normalized text, the first one at position
// pos, until visit returns false. It returns the position after the last word.
// The bytes passed to visit are valid only during the call.
func (c *Cutter) Cut(text string, pos int, visit func(text []byte, w Word) bool) int {
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		switch {
		case isUnspaced(r):
			end, next, more := c.cutRun(text, i, pos, visit)
			if !more {
				return next
			}
			i, pos = end, next
		case isWordRune(r):
			end := c.fill(text, i)
			if !visit(c.buf, Word{Pos: pos, End: end}) {
				return pos + 1
			}
			i, pos = end, pos+1
		case isSymbol(r):
			end := i + size
			if next, more := utf8.DecodeRuneInString(text[end:]); isRegional(r) && isRegional(next) {
				end += more // a flag
			}
			c.buf = append(c.buf[:0], text[i:end]...)
			if !visit(c.buf, Word{Pos: pos, End: end}) {
				return pos + 1
			}
			i, pos = end, pos+1
		default:
			i += size
		}
	}
	return pos
}

// fill copies the word that begins at offset i into the buffer and returns the
// offset after it.
func (c *Cutter) fill(text string, i int) int {
	c.buf = c.buf[:0]
	full := false
	for i < len(text) {
		if b := text[i]; b < utf8.RuneSelf {
			if !isWordByte(b) {
				return i
			}
			if len(c.buf) < MaxBytes && !full {
				c.buf = append(c.buf, lowerASCII(b))
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case isIgnored(r):
		case !isWordRune(r) || isUnspaced(r):
			return i
		case full || len(c.buf)+size > MaxBytes:
			full = true
		default:
			c.buf = append(c.buf, text[i:i+size]...)
		}
		i += size
	}
	return i
}

// cutRun cuts a run of a script without spaces. Each character begins exactly one form: the pair with its successor, or
// itself at the end of the run. A single character therefore matches as a prefix, and several characters match as their
// pairs.
func (c *Cutter) cutRun(text string, i, pos int, visit func([]byte, Word) bool) (end, next int, more bool) {
	alone := true
	for {
		_, size := utf8.DecodeRuneInString(text[i:])
		after := i + size
		c.buf = append(c.buf[:0], text[i:after]...)
		r, follow := utf8.DecodeRuneInString(text[after:])
		if follow == 0 || !isUnspaced(r) {
			w := Word{Pos: pos, Unspaced: true, Single: true, Isolated: alone, End: after}
			return after, pos + 1, visit(c.buf, w)
		}
		alone = false
		c.buf = append(c.buf, text[after:after+follow]...)
		if !visit(c.buf, Word{Pos: pos, Unspaced: true, End: after + follow}) {
			return after, pos + 1, false
		}
		i, pos = after, pos+1
	}
}

func isWordByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
}

func isWordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return isWordByte(byte(r))
	}
	return (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r)) && !isIgnored(r)
}

// isIgnored reports whether r neither ends a word nor belongs to it: the soft
// hyphen, joiners and variation selectors.
func isIgnored(r rune) bool {
	switch {
	case r == 0x00AD, r >= 0x200B && r <= 0x200D, r == 0x2060, r == 0xFEFF,
		r >= 0xFE00 && r <= 0xFE0F, r >= 0x1F3FB && r <= 0x1F3FF, r >= 0xE0020 && r <= 0xE01EF:
		return true
	}
	return false
}

// isSymbol reports whether r alone is a word: an emoji or another symbol
// that is not used in calculations.
func isSymbol(r rune) bool { return r >= utf8.RuneSelf && unicode.Is(unicode.So, r) && !isIgnored(r) }

func isRegional(r rune) bool { return r >= 0x1F1E6 && r <= 0x1F1FF }

// isUnspaced reports whether r is a letter of a script that puts few or no spaces between words.
func isUnspaced(r rune) bool {
	switch {
	case r < 0x0E01:
		return false
	case r <= 0x0EFF, // Thai, Lao
		r >= 0x1000 && r <= 0x109F, // Myanmar
		r >= 0x1780 && r <= 0x17FF, // Khmer
		r >= 0x3005 && r <= 0x3007,
		r >= 0x3041 && r <= 0x30FF, // kana and its long mark
		r >= 0x3400 && r <= 0x9FFF,
		r >= 0xAC00 && r <= 0xD7A3, // Hangul
		r >= 0xF900 && r <= 0xFAFF,
		r >= 0x20000 && r <= 0x3FFFF:
		return unicode.IsLetter(r) || unicode.IsMark(r) || r == 0x3007
	}
	return false
}

func lowerASCII(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

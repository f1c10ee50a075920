package fulltext

import (
	"unicode"
	"unicode/utf8"
)

const (
	// maxFormBytes bounds a form. The rest of a longer word is ignored, both in documents and in queries.
	maxFormBytes = 64
	// fieldGap is the distance between the last position of a field and the first of the next, which is greater than
	// the span of any phrase.
	fieldGap = 2 * maxPhrase
	// maxDocumentWords bounds the indexed words of a document.
	maxDocumentWords = 1 << 20
)

// word is a word that the cutter finds in a text.
type word struct {
	pos      int  // counts every word of the text, stop words too
	unspaced bool // a pair of characters, or the last character of a run
	single   bool // unspaced, and the run's last character alone
	isolated bool // single, and the run's only character
	end      int  // offset in the text after the word
}

// wordCutter cuts a normalized text into words. The zero value is ready; it
// reuses its buffer.
type wordCutter struct {
	buf []byte
}

// cut calls visit for each word of a normalized text, the first one at position
// pos, until visit returns false. It returns the position after the last word.
// The bytes passed to visit are valid only during the call.
func (c *wordCutter) cut(text string, pos int, visit func(text []byte, w word) bool) int {
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
			if !visit(c.buf, word{pos: pos, end: end}) {
				return pos + 1
			}
			i, pos = end, pos+1
		case isSymbol(r):
			end := i + size
			if next, more := utf8.DecodeRuneInString(text[end:]); isRegional(r) && isRegional(next) {
				end += more // a flag
			}
			c.buf = append(c.buf[:0], text[i:end]...)
			if !visit(c.buf, word{pos: pos, end: end}) {
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
func (c *wordCutter) fill(text string, i int) int {
	c.buf = c.buf[:0]
	full := false
	for i < len(text) {
		if b := text[i]; b < utf8.RuneSelf {
			if !isWordByte(b) {
				return i
			}
			if len(c.buf) < maxFormBytes && !full {
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
		case full || len(c.buf)+size > maxFormBytes:
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
func (c *wordCutter) cutRun(text string, i, pos int, visit func([]byte, word) bool) (end, next int, more bool) {
	alone := true
	for {
		_, size := utf8.DecodeRuneInString(text[i:])
		after := i + size
		c.buf = append(c.buf[:0], text[i:after]...)
		r, follow := utf8.DecodeRuneInString(text[after:])
		if follow == 0 || !isUnspaced(r) {
			w := word{pos: pos, unspaced: true, single: true, isolated: alone, end: after}
			return after, pos + 1, visit(c.buf, w)
		}
		alone = false
		c.buf = append(c.buf, text[after:after+follow]...)
		if !visit(c.buf, word{pos: pos, unspaced: true, end: after + follow}) {
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

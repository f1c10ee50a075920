package stream

import (
	"strings"
	"unicode/utf8"
)

// rawByte is where Escape puts the bytes 0x80 to 0xff: at the end of the
// private planes, where no text has characters.
const rawByte = 0x10ff00

// Escape makes JSON text valid UTF-8 without losing anything: a byte that
// is no part of a character becomes one private character, which a [Joiner]
// turns back into the byte. Valid text is returned as it is.
//
// A JSON decoder would replace such bytes by U+FFFD, and with them a
// character whose halves a server sent in two chunks.
func Escape(data []byte) []byte {
	if utf8.Valid(data) {
		return data
	}
	out := make([]byte, 0, len(data)+len(data)/2)
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size == 1 {
			out = utf8.AppendRune(out, rawByte+rune(data[0]))
		} else {
			out = append(out, data[:size]...)
		}
		data = data[size:]
	}
	return out
}

// Joiner puts text together that comes in pieces, and gives out whole
// characters only. The zero value is ready.
type Joiner struct{ rest []byte }

// Add takes the next piece of text out of data that went through [Escape] and
// gives all that is complete.
func (j *Joiner) Add(piece string) string {
	if len(j.rest) == 0 && !hasRawByte(piece) {
		return piece
	}
	buf := j.rest
	for _, r := range piece {
		if r >= rawByte+0x80 && r <= rawByte+0xff {
			buf = append(buf, byte(r-rawByte))
		} else {
			buf = utf8.AppendRune(buf, r)
		}
	}
	whole := len(buf) - incompleteTail(buf)
	text := strings.ToValidUTF8(string(buf[:whole]), "\ufffd")
	j.rest = append([]byte(nil), buf[whole:]...)
	return text
}

// Rest gives what is left at the end: nothing, or U+FFFD for a character that
// was never completed.
func (j *Joiner) Rest() string {
	rest := j.rest
	j.rest = nil
	return strings.ToValidUTF8(string(rest), "\ufffd")
}

func hasRawByte(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r >= rawByte+0x80 && r <= rawByte+0xff })
}

// incompleteTail counts the bytes at the end that begin a character which
// further bytes may complete.
func incompleteTail(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// Join is a [Joiner] for text that came in one piece.
func Join(text string) string {
	var j Joiner
	return j.Add(text) + j.Rest()
}

package stream

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// rawByte is the first of the characters for the bytes 0x80 to 0xff in escaped text:
// the end of the private planes, which texts do not use.
const rawByte = 0x10ff00

// Escape makes JSON text valid without losing data: a byte that is not part of a
// character, and an escaped half of a surrogate pair, become private characters, which
// a [Joiner] converts back. Other text is returned unchanged.
//
// A JSON decoder would replace both with U+FFFD, and lose a character whose halves a
// server sent in two chunks.
func Escape(data []byte) []byte {
	if utf8.Valid(data) && !hasHalfPair(data) {
		return data
	}
	out := make([]byte, 0, len(data)+len(data)/2)
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && size == 1:
			out = utf8.AppendRune(out, rawByte+rune(data[0]))
		case r == '\\':
			half, length := escapeSequence(data)
			size = length
			if half == 0 {
				out = append(out, data[:size]...)
				break
			}
			for _, b := range surrogateBytes(half) {
				out = utf8.AppendRune(out, rawByte+rune(b))
			}
		default:
			out = append(out, data[:size]...)
		}
		data = data[size:]
	}
	return out
}

// hasHalfPair reports whether the text has an escaped surrogate outside of a
// pair.
func hasHalfPair(data []byte) bool {
	for {
		i := bytes.IndexByte(data, '\\')
		if i < 0 {
			return false
		}
		half, length := escapeSequence(data[i:])
		if half != 0 {
			return true
		}
		data = data[i+length:]
	}
}

// escapeSequence reads the escape sequence at the beginning of JSON text; a surrogate
// pair counts as one. half is an unpaired surrogate, otherwise 0.
func escapeSequence(data []byte) (half rune, length int) {
	r, ok := escapedUnit(data)
	if !ok {
		return 0, min(2, len(data))
	}
	if !utf16.IsSurrogate(r) {
		return 0, 6
	}
	if next, ok := escapedUnit(data[6:]); ok && utf16.DecodeRune(r, next) != utf8.RuneError {
		return 0, 12
	}
	return r, 6
}

// escapedUnit reads \uXXXX.
func escapedUnit(data []byte) (r rune, ok bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	for _, c := range data[2:6] {
		r <<= 4
		switch {
		case c >= '0' && c <= '9':
			r |= rune(c - '0')
		case c >= 'a' && c <= 'f':
			r |= rune(c - 'a' + 10)
		case c >= 'A' && c <= 'F':
			r |= rune(c - 'A' + 10)
		default:
			return 0, false
		}
	}
	return r, true
}

// surrogateBytes encodes an unpaired surrogate as UTF-8 would; valid UTF-8 does not
// contain it.
func surrogateBytes(half rune) [3]byte {
	return [3]byte{0xe0 | byte(half>>12), 0x80 | byte(half>>6)&0x3f, 0x80 | byte(half)&0x3f}
}

// surrogate decodes the form of surrogateBytes; 0 if there is none.
func surrogate(data []byte) rune {
	if len(data) < 3 || data[0] != 0xed || data[1] < 0xa0 || data[1] > 0xbf || data[2]&0xc0 != 0x80 {
		return 0
	}
	return 0xd000 | rune(data[1]&0x3f)<<6 | rune(data[2]&0x3f)
}

// Joiner joins text that arrives in pieces, and returns only whole characters. The
// zero value is ready for use.
type Joiner struct{ rest []byte }

// Add appends the next piece of text from data escaped by [Escape], and returns all
// complete characters.
func (j *Joiner) Add(piece string) string {
	if len(j.rest) == 0 && !hasRawByte(piece) {
		return piece
	}
	buf := j.rest
	for _, r := range piece {
		if isRawByte(r) {
			buf = append(buf, byte(r-rawByte))
		} else {
			buf = utf8.AppendRune(buf, r)
		}
	}
	text, rest := characters(buf)
	j.rest = append([]byte(nil), rest...)
	return text
}

// Rest returns the rest at the end: "", or U+FFFD for an incomplete character.
func (j *Joiner) Rest() string {
	rest := j.rest
	j.rest = nil
	return strings.ToValidUTF8(string(rest), "\ufffd")
}

// characters decodes UTF-8 and surrogate pairs up to the end, or to the beginning of
// an incomplete character.
func characters(buf []byte) (text string, rest []byte) {
	var b strings.Builder
	for len(buf) > 0 {
		if mayContinue(buf) {
			break
		}
		_, size := utf8.DecodeRune(buf)
		if half := surrogate(buf); half != 0 {
			size = 3
			if whole := utf16.DecodeRune(half, surrogate(buf[3:])); whole != utf8.RuneError {
				b.WriteRune(whole)
				buf = buf[6:]
				continue
			}
		}
		b.Write(buf[:size])
		buf = buf[size:]
	}
	return strings.ToValidUTF8(b.String(), "\ufffd"), buf
}

// mayContinue reports whether a text is the beginning of a character.
func mayContinue(buf []byte) bool {
	switch {
	case !utf8.FullRune(buf):
		return true
	case buf[0] != 0xed:
		return false
	case len(buf) == 2:
		return buf[1] >= 0xa0 && buf[1] <= 0xbf
	}
	high := surrogate(buf) // the first half of a pair waits for the second
	return high >= 0xd800 && high < 0xdc00 && len(buf) < 6 && strings.HasPrefix("\xed", string(buf[3:min(4, len(buf))]))
}

func isRawByte(r rune) bool { return r >= rawByte+0x80 && r <= rawByte+0xff }

func hasRawByte(s string) bool { return strings.ContainsFunc(s, isRawByte) }

// Join is a [Joiner] for text that arrives in one piece.
func Join(text string) string {
	var j Joiner
	return j.Add(text) + j.Rest()
}

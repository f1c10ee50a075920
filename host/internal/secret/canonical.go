package secret

import (
	"sort"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A canonical text has no escapes of JSON strings and URLs at any depth of nesting,
// so that a secret has one canonical form for all these encodings. It is ambiguous
// and only for recognition: a run of backslashes counts as one, and so does %25
// before two digits.
type canonical struct {
	text []byte
	// spans map positions in text to those in the original.
	spans []span
	// open is the start of an incomplete escape in the original, and known the
	// length of text before it.
	open, known int
}

// span maps the canonical position to to the original position from, and the
// following positions one to one, up to the next span.
type span struct{ to, from int }

// canonicalText returns the canonical form of a text.
func canonicalText(text string) string {
	if !hasEscapes(text) {
		return text
	}
	return string(canonicalise(text).text)
}

func hasEscapes(text string) bool {
	return strings.IndexByte(text, '\\') >= 0 || strings.IndexByte(text, '%') >= 0
}

// mostEscape is the length from which an incomplete escape is treated as text.
const mostEscape = 256

// canonicalise takes linear time.
func canonicalise(text string) canonical {
	c := canonical{text: make([]byte, 0, len(text)), open: -1}
	for i := 0; i < len(text); {
		plain := strings.IndexAny(text[i:], `\%`)
		if plain < 0 {
			plain = len(text) - i
		}
		if plain > 0 {
			c.spans = append(c.spans, span{len(c.text), i})
			c.text = append(c.text, text[i:i+plain]...)
			i += plain
			continue
		}
		i = c.escape(text, i)
	}
	if c.open < 0 || len(text)-c.open > mostEscape {
		c.open, c.known = len(text), len(c.text)
	}
	return c
}

// unfinished records that the escape at start may continue after the text.
func (c *canonical) unfinished(start int) {
	if c.open < 0 {
		c.open, c.known = start, len(c.text)
	}
}

// escape decodes the escape at start, and returns its end.
func (c *canonical) escape(text string, start int) int {
	b, i, complete := unit(text, start)
	escaped := false
	for b == '\\' && i < len(text) && complete {
		escaped = true
		b, i, complete = unit(text, i)
	}
	if !complete || b == '\\' {
		c.unfinished(start)
	}
	if b == '\\' { // at the end of the text it escapes nothing
		return len(text)
	}
	out, begin := []byte{b}, start
	if escaped {
		last := i - 1
		var known bool
		if out, i, known = c.decode(text, start, b, i); !known {
			begin = last // the backslashes belong to the text before them
		}
	}
	c.spans = append(c.spans, span{len(c.text), begin})
	c.text = append(c.text, out...)
	return i
}

// decode returns the meaning of a backslash followed by b; i is the position
// after them.
func (c *canonical) decode(text string, start int, b byte, i int) (out []byte, end int, known bool) {
	if at := strings.IndexByte(`"/'ntrbf`, b); at >= 0 {
		return []byte{"\"/'\n\t\r\b\f"[at]}, i, true
	}
	digits := map[byte]int{'u': 4, 'x': 2}[b]
	if digits == 0 {
		return []byte{b}, i, false
	}
	r, ok := hexDigits(text, i, digits)
	if !ok {
		if len(text) < i+digits && isHex(text[i:]) {
			c.unfinished(start)
		}
		return []byte{b}, i, false
	}
	i += digits
	if b == 'x' {
		return []byte{byte(r)}, i, true
	}
	if utf16.IsSurrogate(r) {
		next := i + len(text[i:]) - len(strings.TrimLeft(text[i:], `\`))
		if low, ok := hexDigits(text, next+1, 4); ok && next > i && text[next] == 'u' {
			return utf8.AppendRune(nil, utf16.DecodeRune(r, low)), next + 5, true
		}
		if len(text)-i < 12 {
			c.unfinished(start)
		}
	}
	return utf8.AppendRune(nil, r), i, true
}

// unit returns the byte at i, which can be percent-encoded more than once.
func unit(text string, i int) (b byte, end int, complete bool) {
	if text[i] != '%' {
		return text[i], i + 1, true
	}
	i++
	for strings.HasPrefix(text[i:], "25") && len(text) >= i+4 && isHex(text[i+2:i+4]) {
		i += 2
	}
	if r, ok := hexDigits(text, i, 2); ok {
		return byte(r), i + 2, i+4 <= len(text) || r != '%'
	}
	return '%', i, len(text) >= i+2 || !isHex(text[i:])
}

func hexDigits(text string, i, n int) (r rune, ok bool) {
	if i < 0 || len(text) < i+n {
		return 0, false
	}
	for _, b := range []byte(text[i : i+n]) {
		d := strings.IndexByte("0123456789abcdef", b|0x20)
		if d < 0 || b < '0' {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

func isHex(text string) bool {
	_, ok := hexDigits(text, 0, len(text))
	return ok
}

// original returns the position in the original text, of the given length, of a
// canonical position.
func (c *canonical) original(at, length int) int {
	if at >= len(c.text) {
		return length
	}
	s := c.spans[sort.Search(len(c.spans), func(i int) bool { return c.spans[i].to > at })-1]
	return s.from + at - s.to
}

package expr

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/host/internal/python"
)

// number scans a number: decimal, 0x, 0o or 0b integers, floats, with
// underscores between digits. An integer beyond int64 keeps its digits.
func (l *lexer) number() {
	start := l.pos
	rest := l.text[start:]
	if len(rest) > 1 && rest[0] == '0' && strings.IndexByte("xXoObB", rest[1]) >= 0 {
		l.pos += 2
		l.digits(isHexDigit)
		l.addInteger(start)
		return
	}
	l.digits(isDigit)
	float := false
	if l.at('.') && l.pos+1 < len(l.text) && isDigit(l.text[l.pos+1]) {
		float = true
		l.pos++
		l.digits(isDigit)
	}
	if mark := l.pos; l.at('e') || l.at('E') {
		l.pos++
		if l.at('+') || l.at('-') {
			l.pos++
		}
		if l.pos < len(l.text) && isDigit(l.text[l.pos]) {
			float = true
			l.digits(isDigit)
		} else {
			l.pos = mark
		}
	}
	if !float {
		l.addInteger(start)
		return
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(l.text[start:l.pos], "_", ""), 64)
	if err != nil {
		panic(l.errorf(start, "the number %s does not fit a 64-bit float", l.text[start:l.pos]))
	}
	l.addNumber(f, start)
}

func (l *lexer) at(c byte) bool { return l.pos < len(l.text) && l.text[l.pos] == c }

func (l *lexer) digits(valid func(byte) bool) {
	for l.pos < len(l.text) && (valid(l.text[l.pos]) || l.text[l.pos] == '_') {
		l.pos++
	}
}

func (l *lexer) addInteger(start int) {
	digits := strings.ReplaceAll(l.text[start:l.pos], "_", "")
	base := 10
	if len(digits) > 1 && digits[0] == '0' && !isDigit(digits[1]) {
		base = 0
	}
	if i, err := strconv.ParseInt(digits, base, 64); err == nil {
		l.addNumber(i, start)
		return
	}
	if len(digits) > python.MaxDigits {
		panic(l.errorf(start, "the integer has more than %d digits", python.MaxDigits))
	}
	i, ok := new(big.Int).SetString(digits, base)
	if !ok {
		panic(l.errorf(start, "%s is not a number", l.text[start:l.pos]))
	}
	l.addNumber(json.Number(i.String()), start)
}

func (l *lexer) addNumber(v any, start int) {
	if r, _ := utf8.DecodeRuneInString(l.text[l.pos:]); l.pos < len(l.text) && isWord(r) {
		panic(l.errorf(start, "a number must not be followed by a name"))
	}
	l.tokens = append(l.tokens, token{kind: tokenNumber, text: l.text[start:l.pos], value: v, pos: start})
}

func isHexDigit(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// str scans a quoted string with Python's escapes; an unknown escape keeps its
// backslash.
func (l *lexer) str(quote byte) {
	start := l.pos
	for i := start + 1; i < len(l.text); i++ {
		switch l.text[i] {
		case '\\':
			i++
		case quote:
			l.pos = i + 1
			l.add(tokenString, unescape(l.text[start+1:i]), start)
			return
		}
	}
	panic(l.errorf(start, "the string is not closed: %c is missing", quote))
}

func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for s != "" {
		i := strings.IndexByte(s, '\\')
		if i < 0 || i+1 >= len(s) {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		s = s[i:]
		r, size := escape(s)
		if size == 0 {
			b.WriteByte('\\')
			s = s[1:]
			continue
		}
		if r >= 0 {
			b.WriteRune(r)
		}
		s = s[size:]
	}
	return b.String()
}

// escape decodes the escape at the start of s. It returns the character, -1 for
// none, and the length in bytes, 0 if it is not an escape.
func escape(s string) (rune, int) {
	switch s[1] {
	case '\n':
		return -1, 2
	case '\\', '\'', '"':
		return rune(s[1]), 2
	case 'n':
		return '\n', 2
	case 't':
		return '\t', 2
	case 'r':
		return '\r', 2
	case '0':
		return 0, 2
	case 'a':
		return '\a', 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'v':
		return '\v', 2
	case 'x':
		return escapeHex(s, 2)
	case 'u':
		return escapeHex(s, 4)
	case 'U':
		return escapeHex(s, 8)
	}
	return 0, 0
}

func escapeHex(s string, digits int) (rune, int) {
	if len(s) < 2+digits {
		return 0, 0
	}
	n, err := strconv.ParseUint(s[2:2+digits], 16, 32)
	if err != nil || n > utf8.MaxRune {
		return 0, 0
	}
	return rune(n), 2 + digits
}

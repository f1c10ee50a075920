package spec

import (
	"strings"
	"unicode/utf8"
)

// unfold finds the character of a scalar with n others before it, in the way
// the scalar is written: behind its quote, or plain or folded where quote is
// 0. It gives how many lines further down that is, and how many characters
// stand before it on its line.
func unfold(written string, quote byte, n int) (down, right int) {
	for written != "" {
		u := nextUnit(written, quote)
		if u.chars > n {
			break
		}
		raw := written[:u.size]
		if at := strings.LastIndexByte(raw, '\n'); at >= 0 {
			down += strings.Count(raw, "\n")
			right = u.size - at - 1
		} else {
			right += utf8.RuneCountInString(raw)
		}
		n -= u.chars
		written = written[u.size:]
	}
	return down, right
}

// unit is a piece of a scalar that stands for some characters of its text: an
// escape, a fold between lines, or just a character.
type unit struct{ size, chars int }

func nextUnit(written string, quote byte) unit {
	if quote == '"' && written[0] == '\\' && len(written) > 1 {
		return escape(written)
	}
	if quote == '\'' && strings.HasPrefix(written, "''") {
		return unit{2, 1}
	}
	blank := len(written) - len(strings.TrimLeft(written, " \t\r\n"))
	switch breaks := strings.Count(written[:blank], "\n"); breaks {
	case 0:
		_, size := utf8.DecodeRuneInString(written)
		return unit{size, 1}
	case 1:
		return unit{blank, 1}
	default:
		return unit{blank, breaks - 1}
	}
}

func escape(written string) unit {
	switch written[1] {
	case '\r', '\n':
		rest := strings.TrimLeft(written[1:], " \t\r\n")
		return unit{len(written) - len(rest), 0}
	case 'x':
		return unit{min(4, len(written)), 1}
	case 'u':
		return unit{min(6, len(written)), 1}
	case 'U':
		return unit{min(10, len(written)), 1}
	}
	_, size := utf8.DecodeRuneInString(written[1:])
	return unit{1 + size, 1}
}

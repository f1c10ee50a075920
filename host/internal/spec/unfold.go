package spec

import (
	"strings"
	"unicode/utf8"
)

// unfold finds the character at index n of a scalar in its spelling in the
// file, which begins after the quote; quote is 0 for a plain or folded scalar.
// It returns the number of lines before it, and the number of characters before
// it on its line.
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

// unit is a piece of a spelled scalar and the number of characters it means: an
// escape, a fold between lines, or a character.
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

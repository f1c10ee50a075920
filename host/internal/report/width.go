package report

import (
	"strings"
	"unicode"
)

// runeWidth is how many cells of a terminal a character takes.
func runeWidth(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r < 0x1100:
		return 1
	case r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

func textWidth(text string) int {
	width := 0
	for _, r := range text {
		width += runeWidth(r)
	}
	return width
}

// truncate cuts a text to a number of cells; more stands for what is missing.
func truncate(text string, width int, more string) string {
	if textWidth(text) <= width {
		return text
	}
	width -= textWidth(more)
	if width <= 0 {
		return ""
	}
	var b strings.Builder
	for _, r := range text {
		if width -= runeWidth(r); width < 0 {
			break
		}
		b.WriteRune(r)
	}
	return b.String() + more
}

// tail keeps the last cells of a text.
func tail(text string, width int) string {
	runes := []rune(text)
	from := len(runes)
	for from > 0 {
		if width -= runeWidth(runes[from-1]); width < 0 {
			break
		}
		from--
	}
	return string(runes[from:])
}

// oneLine makes a text from outside harmless to a terminal: no line breaks,
// no control characters.
func oneLine(text string) string {
	return strings.Join(strings.Fields(printable(text)), " ")
}

// printable replaces control characters, which could move the cursor or
// worse, by spaces; line breaks and tabs stay.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

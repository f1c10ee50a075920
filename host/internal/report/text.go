package report

import (
	"strings"
	"time"
	"unicode"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Printable makes untrusted text safe for a terminal: it replaces control
// characters and characters that change the reading direction by spaces. Line
// breaks and tabs stay.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if Harmful(r) {
			return ' '
		}
		return r
	}, text)
}

// Harmful reports whether a character can have an effect on a terminal other
// than being shown; line breaks and tabs are not harmful.
func Harmful(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true // they change the apparent order of a text
	}
	return unicode.IsControl(r)
}

// oneLine is [Printable] without line breaks.
func oneLine(text string) string {
	return strings.Join(strings.Fields(Printable(text)), " ")
}

func integer(e flow.Event, key string) int64 {
	n, _ := e.Field(key).(int64)
	return n
}

func milliseconds(e flow.Event, key string) time.Duration {
	ms, _ := e.Field(key).(float64)
	return time.Duration(ms * float64(time.Millisecond))
}

// failure returns the error of an event.
func failure(e flow.Event) string { return e.Text("error_type") + ": " + e.Text("error") }

// question returns the question of an interrupt.
func question(e flow.Event) string {
	if q := e.Text("question"); q != "" {
		return q
	}
	return "interrupt " + e.Text("kind")
}

// compact returns a value as JSON on one line.
func compact(v any) string {
	raw, err := value.Encode(v)
	if err != nil {
		return "?"
	}
	return string(raw)
}

// wideSigns are the characters before the CJK blocks that terminals draw as
// emoji, two cells wide.
var wideSigns = &unicode.RangeTable{R16: []unicode.Range16{
	{0x231a, 0x231b, 1},
	{0x2329, 0x232a, 1},
	{0x23e9, 0x23ec, 1},
	{0x23f0, 0x23f3, 3},
	{0x25fd, 0x25fe, 1},
	{0x2614, 0x2615, 1},
	{0x2648, 0x2653, 1},
	{0x267f, 0x2693, 20},
	{0x26a1, 0x26a1, 1},
	{0x26aa, 0x26ab, 1},
	{0x26bd, 0x26be, 1},
	{0x26c4, 0x26c5, 1},
	{0x26ce, 0x26d4, 6},
	{0x26ea, 0x26ea, 1},
	{0x26f2, 0x26f3, 1},
	{0x26f5, 0x26fa, 5},
	{0x26fd, 0x2705, 8},
	{0x270a, 0x270b, 1},
	{0x2728, 0x2728, 1},
	{0x274c, 0x274e, 2},
	{0x2753, 0x2755, 1},
	{0x2757, 0x2757, 1},
	{0x2795, 0x2797, 1},
	{0x27b0, 0x27bf, 15},
	{0x2b1b, 0x2b1c, 1},
	{0x2b50, 0x2b55, 5},
}}

// runeWidth returns the number of terminal cells that a character takes.
func runeWidth(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r < 0x1100:
		return 1
	case r < 0x2e80 && r > 0x115f:
		if unicode.Is(wideSigns, r) {
			return 2
		}
		return 1
	case r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r == 0x1f004, r == 0x1f0cf, r >= 0x1f18e && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
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

// truncate cuts a text to a number of cells; more replaces the missing part.
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

// tail returns the last cells of a text.
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

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

func failure(e flow.Event) string { return e.Text("error_type") + ": " + e.Text("error") }

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

package teacmd

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/cmd/internal/report"
	"github.com/the-edge-agent/tea/host"
)

// escapeJSON writes control characters and other characters that can mislead
// the reader of a terminal as escapes; JSON itself allows some of them. The
// value does not change.
func escapeJSON(raw []byte) []byte {
	if isHarmless(raw) {
		return raw
	}
	out := make([]byte, 0, len(raw)+32)
	for len(raw) > 0 {
		r, size := utf8.DecodeRune(raw)
		if report.Harmful(r) {
			out = fmt.Appendf(out, "\\u%04x", r)
		} else {
			out = append(out, raw[:size]...)
		}
		raw = raw[size:]
	}
	return out
}

// isHarmless reports whether a text has no character that [report.Harmful]
// reports. Most texts are ASCII, where bytes are enough.
func isHarmless(text []byte) bool {
	for i, c := range text {
		if c >= utf8.RuneSelf {
			return bytes.IndexFunc(text[i:], report.Harmful) < 0
		}
		if report.Harmful(rune(c)) {
			return false
		}
	}
	return true
}

// inLine joins the lines of a text, so that it cannot imitate other output.
func inLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// maskedText writes text to w without the secrets in it. A secret must not be
// split between two writes.
type maskedText struct {
	mask host.Mask
	w    io.Writer
}

func (m maskedText) Write(text []byte) (int, error) {
	if _, err := io.WriteString(m.w, m.mask.Text(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// plainText writes text for people to w, without control characters.
type plainText struct{ w io.Writer }

func (p plainText) Write(text []byte) (int, error) {
	if isHarmless(text) {
		return p.w.Write(text)
	}
	if _, err := io.WriteString(p.w, report.Printable(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

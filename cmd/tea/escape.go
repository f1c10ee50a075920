package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/host"
)

// escapeJSON writes the characters that a terminal may take for more than
// text as escapes: JSON itself allows some of them. The meaning stays.
func escapeJSON(raw []byte) []byte {
	if bytes.IndexFunc(raw, host.Harmful) < 0 {
		return raw
	}
	out := make([]byte, 0, len(raw)+32)
	for len(raw) > 0 {
		r, size := utf8.DecodeRune(raw)
		if host.Harmful(r) {
			out = fmt.Appendf(out, "\\u%04x", r)
		} else {
			out = append(out, raw[:size]...)
		}
		raw = raw[size:]
	}
	return out
}

// inLine keeps a text of several lines in one, so that it cannot look like
// what follows it.
func inLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// maskedText writes text to w without the secrets in it; each write must hold
// them wholly.
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

// plainText writes text for people to w, without what a terminal may take for
// more than text.
type plainText struct{ w io.Writer }

func (p plainText) Write(text []byte) (int, error) {
	if bytes.IndexFunc(text, host.Harmful) < 0 {
		return p.w.Write(text)
	}
	if _, err := io.WriteString(p.w, host.Printable(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

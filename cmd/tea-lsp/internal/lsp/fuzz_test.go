package lsp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"
	"unicode/utf8"
)

// Any text, position and change is survived, and positions are those of the text.
func FuzzDocument(f *testing.F) {
	f.Add("nodes:\n  - {name: a, with: {b: \"c\\\"\"}}\r\n\ré😀|", 1, 5, 2, 1, "x\n")
	f.Fuzz(func(t *testing.T, text string, line, character, endLine, end int, insert string) {
		d := newDocument("file:///f", 1, text)
		at := d.offset(position{line, character})
		if utf8.ValidString(text) && d.offset(d.position(at)) != at {
			t.Errorf("offset %d is at %v, which is %d", at, d.position(at), d.offset(d.position(at)))
		}
		cursorAt(d, at)
		d = d.edit(2, []change{{Range: &span{position{line, character}, position{endLine, end}}, Text: insert}})
		cursorAt(d, d.offset(position{line, character}))
		d.fix(diagnostic{Source: "tea", Range: span{position{line, character}, position{endLine, end}}, Message: text + "\nhint: did you mean \"" + insert + "\"?"})
		d.endOf(d.at(line, character))
	})
}

// Whatever arrives, the reader ends with the input.
func FuzzRead(f *testing.F) {
	f.Add([]byte("Content-Length: 2\r\n\r\n{}Content-Length: 9\r\n\r\n[]"))
	f.Fuzz(func(t *testing.T, input []byte) {
		c := &conn{in: bufio.NewReader(bytes.NewReader(input)), out: io.Discard}
		for range len(input) + 1 {
			_, err := c.read()
			if _, ok := errors.AsType[*rpcError](err); err != nil && !ok {
				return
			}
		}
		t.Error("the reader does not end")
	})
}

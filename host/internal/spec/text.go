package spec

import (
	"strings"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/sdk/diag"
)

// Text is a string of the document with its position. Pos is where the content
// begins: the first character after a quote, or the first line of a block.
type Text struct {
	diag.Pos
	Value string
	// Block says that the text is a YAML block scalar: line n of the text is
	// line n of the file, and every line begins at Pos.Column.
	Block bool
	// Cut reports that the text ends at a comment, which the author may have
	// meant to be part of it.
	Cut bool

	// written is the rest of the file from Pos on for a text whose spelling
	// differs from its value; quote is the quote before it, or 0.
	written string
	quote   byte
}

// CutHint is the hint for code that ends at a comment; see [Text.Cut].
const CutHint = "' #' begins a comment in YAML: use a block scalar (run: |) or quotes"

// At returns the position in the file of a line and column inside the text,
// both from 1.
func (t Text) At(line, column int) diag.Pos {
	pos := t.Pos
	if t.written != "" {
		down, right := unfold(t.written, t.quote, t.offset(line, column))
		if pos.Line += down; down > 0 {
			pos.Column = 1
		}
		pos.Column += right
		return pos
	}
	if line > 1 {
		pos.Line += line - 1
	}
	if line <= 1 || t.Block {
		pos.Column += max(column, 1) - 1
	} else {
		pos.Column = 0
	}
	return pos
}

// offset counts the characters of the text before a line and column.
func (t Text) offset(line, column int) int {
	offset := 0
	for rest := t.Value; line > 1; line-- {
		row, after, _ := strings.Cut(rest, "\n")
		offset += utf8.RuneCountInString(row) + 1
		rest = after
	}
	return offset + max(column, 1) - 1
}

// Tree is a value of the document whose strings can contain templates.
type Tree struct {
	diag.Pos
	Value any
	// Places has the texts of the strings by their path inside the value, such as
	// "items[0].name"; "" is the value itself.
	Places map[string]Text

	root element
}

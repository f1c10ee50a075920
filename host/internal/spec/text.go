package spec

import "github.com/the-edge-agent/tea/sdk/diag"

// Text is a string of the document with its place. Pos is where the content
// begins: the first character behind a quote, or the first line of a block.
type Text struct {
	diag.Pos
	Value string
	// Block says that the text is a YAML block scalar: line n of the text is
	// line n of the file, and every line begins at Pos.Column.
	Block bool
}

// At gives the place in the file of a line and column inside the text, both
// from 1.
func (t Text) At(line, column int) diag.Pos {
	pos := t.Pos
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

// Tree is a value of the document whose strings may hold templates.
type Tree struct {
	diag.Pos
	Value any
	// Places gives the text behind a string at a path inside the value, such
	// as "items[0].name"; "" is the value itself.
	Places map[string]Text

	root element
}

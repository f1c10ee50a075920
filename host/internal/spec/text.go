package spec

import (
	"strings"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/host/internal/source"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Text is a string of the document with its position. Pos is where the content
// begins: the first character after a quote, or the first line of a block.
type Text struct {
	diag.Pos
	Value string
	// Block reports whether the text is a YAML block scalar: line n of the text is
	// line n of the file, and every line begins at Pos.Column.
	Block bool
	// Cut reports whether the text ends at a comment, which the author may have
	// meant to be part of it.
	Cut bool

	// written is the rest of the file from Pos on, for a text whose spelling
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
	// Known is the value of the templates, if it is known before the run, as in a
	// call from the command line; otherwise nil.
	Known any

	root element
}

// newTree returns the Tree of a value.
func newTree(v element) *Tree {
	t := &Tree{Pos: v.pos(), Value: v.node.Value(), Places: map[string]Text{}, root: v}
	t.place(v, "")
	return t
}

// place records the strings inside v; inner is the path from the tree's root.
func (t *Tree) place(v element, inner string) {
	switch v.node.Kind {
	case source.String:
		t.Places[inner] = v.text()
	case source.List:
		for i, item := range v.items() {
			t.place(item, diag.Index(inner, i))
		}
	case source.Map:
		for _, e := range v.entries() {
			t.place(e.element, diag.Key(inner, e.key.Text))
		}
	}
}

// Call returns the call of the action whose name is at the path uses, with the
// parameters at the path with.
func (t *Tree) Call(uses, with string) *ActionBody {
	b := &ActionBody{Pos: t.ValuePos(uses), Uses: t.Places[uses]}
	if _, v := find(t.root, nil, "", with); v.node != nil {
		b.With = newTree(v)
	}
	return b
}

// KeyPos returns the position of the key of the value at a path, or of the
// value if it has no key.
func (t *Tree) KeyPos(path string) diag.Pos {
	key, v := find(t.root, nil, "", path)
	pos := t.posOf(v)
	if key != nil {
		pos.Line, pos.Column = key.Line, key.Column
	}
	return pos
}

// ValuePos returns the position of the value at a path.
func (t *Tree) ValuePos(path string) diag.Pos {
	_, v := find(t.root, nil, "", path)
	return t.posOf(v)
}

func (t *Tree) posOf(v element) diag.Pos {
	if v.node == nil {
		return t.Pos
	}
	return v.pos()
}

// find looks for the value at a path inside v, which has the path inner.
func find(v element, key *source.Node, inner, path string) (*source.Node, element) {
	if inner == path {
		return key, v
	}
	if v.node == nil {
		return nil, element{}
	}
	for i, item := range v.items() {
		if k, found := find(item, nil, diag.Index(inner, i), path); found.node != nil {
			return k, found
		}
	}
	for _, e := range v.entries() {
		if k, found := find(e.element, e.key, diag.Key(inner, e.key.Text), path); found.node != nil {
			return k, found
		}
	}
	return nil, element{}
}

// unfold finds the character at index n of a scalar in its spelling in the file,
// which begins after the quote; quote is 0 for a plain or folded scalar. It returns
// the number of lines before the character, and the number of characters before it
// on its line.
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

// unit is a piece of a spelled scalar with the number of characters that it
// represents: an escape, a fold between lines, or a character.
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

package source

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// lines finds text in a file by line and column. It splits lines as YAML does.
type lines struct {
	data   []byte
	text   string // data, once a scalar needs it
	starts []int
	// row, column and rest are the last position that was looked up; the next one
	// in a long line is usually near.
	row, column int
	rest        []byte
}

func newLines(data []byte) *lines { return &lines{data: data} }

// line returns line n, counted from 1, with its line break; nil beyond the end.
func (l *lines) line(n int) []byte {
	if l.starts == nil {
		l.split()
	}
	if n < 1 || n > len(l.starts) {
		return nil
	}
	if n == len(l.starts) {
		return l.data[l.starts[n-1]:]
	}
	return l.data[l.starts[n-1]:l.starts[n]]
}

func (l *lines) split() {
	l.starts = append(l.starts, 0)
	for i := 0; i < len(l.data); i++ {
		if size := breakAt(l.data[i:]); size > 0 {
			i += size - 1
			l.starts = append(l.starts, i+1)
		}
	}
}

// breakAt returns the size of the line break at the start of data, or 0.
func breakAt(data []byte) int {
	switch data[0] {
	case '\n':
		return 1
	case '\r':
		if len(data) > 1 && data[1] == '\n' {
			return 2
		}
		return 1
	}
	return 0
}

// locateText sets the position at which the content of a scalar begins.
func (l *lines) locateText(y *yaml.Node, n *Node) {
	n.TextLine, n.TextColumn = y.Line, y.Column
	block := y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0
	quoted := y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0
	if y.Anchor != "" || y.Style&yaml.TaggedStyle != 0 {
		l.skipProperties(n)
	}
	switch {
	case quoted:
		n.TextColumn++
	case block:
		n.Block = y.Style&yaml.LiteralStyle != 0
		n.TextLine++
		n.TextColumn = l.blockColumn(n.TextLine, y.Value)
	}
	if n.Kind == String && !n.Block || n.Kind == Null {
		l.compare(n, quoted, block)
	}
}

// compare sets the fields of n that describe its spelling in the file.
func (l *lines) compare(n *Node, quoted, block bool) {
	row := l.line(n.TextLine)
	rest := l.from(n.TextLine, n.TextColumn)
	after, same := bytes.CutPrefix(rest, []byte(n.Text))
	switch {
	case row == nil:
	case !same:
		if l.text == "" {
			l.text = string(l.data)
		}
		at := l.starts[n.TextLine-1] + len(row) - len(rest)
		n.Written = l.text[at:]
		if quoted {
			n.Quote = l.text[at-1]
		}
	case !quoted && !block:
		trimmed := bytes.TrimLeft(after, " \t")
		n.Cut = len(trimmed) < len(after) && bytes.HasPrefix(trimmed, []byte("#"))
	}
}

// skipProperties moves the position of a text past an anchor and a tag on the
// same line.
func (l *lines) skipProperties(n *Node) {
	rest := string(l.from(n.TextLine, n.TextColumn))
	for strings.HasPrefix(rest, "&") || strings.HasPrefix(rest, "!") {
		end := strings.IndexAny(rest, " \t\r\n")
		if end < 0 {
			return
		}
		trimmed := strings.TrimLeft(rest[end:], " \t")
		if strings.Trim(trimmed, "\r\n") == "" {
			return
		}
		n.TextColumn += utf8.RuneCountInString(rest[:len(rest)-len(trimmed)])
		rest = trimmed
	}
}

// from returns a line starting at a column.
func (l *lines) from(row, column int) []byte {
	if row != l.row || column < l.column {
		l.row, l.column, l.rest = row, 1, l.line(row)
	}
	l.rest = skipRunes(l.rest, column-l.column)
	l.column = max(l.column, column)
	return l.rest
}

func skipRunes(b []byte, n int) []byte {
	for ; n > 0 && len(b) > 0; n-- {
		_, size := utf8.DecodeRune(b)
		b = b[size:]
	}
	return b
}

// blockColumn returns the column at which the lines of a block scalar begin: the
// indentation of its first non-blank line minus the spaces that belong to the
// value.
func (l *lines) blockColumn(first int, value string) int {
	for row := range strings.SplitSeq(value, "\n") {
		kept := len(row) - len(strings.TrimLeft(row, " "))
		if kept < len(row) {
			raw := l.line(first)
			return len(raw) - len(bytes.TrimLeft(raw, " ")) - kept + 1
		}
		first++
	}
	return 1
}

package extract

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// spareCells are the cells that a table may gain by spans and short rows, in addition
// to three per existing cell.
const spareCells = 10_000

// cellPipe stands for a | in the code of a cell until the Markdown is written: the
// converter only escapes it in other text. It is not a character. cellDot stands for
// the dot after a number, which the converter would escape.
const (
	cellPipe = "\ufdd0"
	cellDot  = "\ufdd2"
)

// simplifyTables prepares the tables below n for Markdown, whose cells are single
// lines: lists and blocks of code in cells become lines. A table with headings or
// other tables in its cells, or one that spans and short rows would make many times
// larger, becomes paragraphs.
func simplifyTables(n *html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		simplifyTables(c)
	}
	if n.DataAtom != atom.Table {
		return
	}
	rows, nested := rowsOf(n)
	width, cells := 0, 0
	for _, row := range rows {
		width = max(width, len(row))
		cells += len(row)
	}
	if nested || isLayout(n) || len(rows)*width > 3*cells+spareCells {
		unwrapTable(n)
		return
	}
	spans := 0
	for y, row := range rows {
		for _, cell := range row {
			spans += span(cell, "colspan", width) * span(cell, "rowspan", len(rows)-y)
		}
	}
	for _, row := range rows {
		for _, cell := range row {
			if spans > 3*cells+spareCells {
				setSpan(cell, "colspan", 1)
				setSpan(cell, "rowspan", 1)
			}
			simplifyCell(cell)
		}
	}
}

// rowsOf returns the cells of a table by row, and whether a cell contains
// another table.
func rowsOf(table *html.Node) (rows [][]*html.Node, nested bool) {
	elements(table, func(n *html.Node) {
		switch n.DataAtom {
		case atom.Tr:
			rows = append(rows, nil)
		case atom.Td, atom.Th:
			if len(rows) > 0 {
				rows[len(rows)-1] = append(rows[len(rows)-1], n)
			}
		case atom.Table:
			nested = true
		}
	})
	return rows, nested
}

// span limits the span of a cell to the rest of its table, and returns it.
func span(cell *html.Node, name string, limit int) int {
	n, err := strconv.Atoi(attr(cell, name))
	if err != nil && attr(cell, name) == "" || n == 1 {
		return 1
	}
	n = min(max(n, 1), limit)
	setSpan(cell, name, n)
	return n
}

func setSpan(cell *html.Node, name string, n int) {
	if attr(cell, name) != "" {
		setAttr(cell, name, strconv.Itoa(n))
	}
}

// unwrapTable replaces the cells of a table with paragraphs.
func unwrapTable(n *html.Node) {
	rename(n, atom.Div)
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch c.DataAtom {
		case atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr, atom.Td, atom.Th, atom.Caption, atom.Colgroup, atom.Col:
			unwrapTable(c)
		}
	}
}

// isLayout reports whether a table has content that a Markdown table cannot hold, or
// is inside of an element that cannot hold a table.
func isLayout(table *html.Node) bool {
	for p := table.Parent; p != nil; p = p.Parent {
		if p.DataAtom == atom.A || isFormatting(p.DataAtom) || p.DataAtom == atom.Del {
			return true
		}
	}
	return attr(table, "role") == "presentation" || find(table, func(n *html.Node) bool {
		switch n.DataAtom {
		case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Hr, atom.Blockquote:
			return true
		}
		return false
	}) != nil
}

// simplifyCell converts the lists and blocks of code below n to lines.
func simplifyCell(n *html.Node) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		switch c.DataAtom {
		case atom.Pre:
			for line := range strings.SplitSeq(rawText(c), "\n") {
				code := &html.Node{Type: html.ElementNode, DataAtom: atom.Code, Data: "code"}
				code.AppendChild(&html.Node{Type: html.TextNode, Data: strings.ReplaceAll(line, "|", cellPipe)})
				insertLine(n, c, code)
			}
			n.RemoveChild(c)
		case atom.Code:
			text := strings.ReplaceAll(rawText(c), "|", cellPipe)
			for c.FirstChild != nil {
				c.RemoveChild(c.FirstChild)
			}
			c.AppendChild(&html.Node{Type: html.TextNode, Data: text})
		case atom.Ul, atom.Ol, atom.Li:
			simplifyCell(c)
			if c.DataAtom == atom.Li {
				if !beginsLine(c) {
					n.InsertBefore(&html.Node{Type: html.ElementNode, DataAtom: atom.Br, Data: "br"}, c)
				}
				c.InsertBefore(textNode(strings.ReplaceAll(itemMark(c, "• "), ".", cellDot)), c.FirstChild)
			}
			rename(c, atom.Span)
		default:
			simplifyCell(c)
		}
		c = next
	}
}

// beginsLine reports whether an item of a list is at the beginning of a line
// without a line break.
func beginsLine(item *html.Node) bool {
	for c := item; ; c = c.Parent {
		before := c.PrevSibling
		for before != nil && before.Type == html.TextNode && strings.TrimSpace(before.Data) == "" {
			before = before.PrevSibling
		}
		if before != nil {
			return before.DataAtom == atom.P || before.DataAtom == atom.Div
		}
		if p := c.Parent; p == nil || p.DataAtom != atom.Ul && p.DataAtom != atom.Ol {
			return true
		}
	}
}

// insertLine inserts a node as a line before another one.
func insertLine(parent, before, line *html.Node) {
	if before.PrevSibling != nil {
		parent.InsertBefore(&html.Node{Type: html.ElementNode, DataAtom: atom.Br, Data: "br"}, before)
	}
	parent.InsertBefore(line, before)
}

// rawText returns the text below n as it is.
func rawText(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}

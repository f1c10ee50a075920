package extract

import (
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Text returns the content as plain text: a line for each block, an empty line
// between paragraphs, the cells of a table's row separated by tabs.
func (c *Content) Text() string {
	if c.node == nil {
		return c.text
	}
	w := new(textWriter)
	c.plainStructure()
	w.write(c.node)
	return strings.TrimSpace(strings.ReplaceAll(w.b.String(), subscriptMark, "_"))
}

// maxInline is the maximum length of a text whose elements keep their meaning.
const maxInline = 4096

// inlineText returns the text below n on one line.
func inlineText(n *html.Node) string {
	if shortText(n, maxInline) == "" { // empty, or too long to copy
		return textOf(n)
	}
	copied := clone(n)
	isolateFormulas(copied)
	removeAll(copied, isInvisible)
	c := Content{node: copied}
	return strings.Join(strings.Fields(c.Text()), " ")
}

// textWriter collects text. It writes line breaks before the next text, so that empty
// elements leave none.
type textWriter struct {
	b      strings.Builder
	breaks int  // line breaks before the next text
	space  bool // a space before the next text
	pre    int  // number of enclosing pre elements
	item   bool // the mark of a list item was written, and its text follows
}

func (w *textWriter) write(n *html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch c.Type {
		case html.TextNode:
			w.text(c.Data)
		case html.ElementNode:
			w.element(c)
		}
	}
}

func (w *textWriter) element(n *html.Node) {
	switch n.DataAtom {
	case atom.Br:
		w.lineBreak(1)
	case atom.Hr:
		w.lineBreak(2)
	case atom.Pre:
		w.lineBreak(2)
		w.pre++
		w.write(n)
		w.pre--
		w.lineBreak(2)
	case atom.Li:
		w.lineBreak(1)
		w.word(itemMark(n, "- "))
		w.item = true
		w.write(n)
		w.item = false
		w.lineBreak(1)
	case atom.Td, atom.Th:
		if w.breaks == 0 && w.b.Len() > 0 {
			w.b.WriteByte('\t')
			w.space = false
		}
		w.write(n)
	case atom.Tr, atom.Div, atom.Section, atom.Dt, atom.Dd, atom.Figcaption, atom.Address, atom.Details, atom.Summary, atom.Option:
		w.lineBreak(1)
		w.write(n)
		w.lineBreak(1)
	case atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Ul, atom.Ol, atom.Dl, atom.Table, atom.Blockquote, atom.Article,
		atom.Main, atom.Figure, atom.Header, atom.Footer, atom.Aside, atom.Nav, atom.Form, atom.Fieldset:
		w.lineBreak(2)
		w.write(n)
		w.lineBreak(2)
	default:
		w.write(n)
	}
}

// itemMark returns the number of an item from [splitList], or bullet for an item without
// a number.
func itemMark(item *html.Node, bullet string) string {
	if item.Parent.DataAtom != atom.Ol || attr(item, "value") == "" {
		return bullet
	}
	return attr(item, "value") + ". "
}

func (w *textWriter) lineBreak(n int) { w.breaks, w.space = max(w.breaks, n), false }

// text writes a text node.
func (w *textWriter) text(text string) {
	if w.pre > 0 {
		if text != "" {
			w.word(text)
		}
		return
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		w.space = w.space || text != ""
		return
	}
	if strings.TrimLeftFunc(text, unicode.IsSpace) != text { // including a no-break space
		w.space = true
	}
	w.word(strings.Join(words, " "))
	w.space = strings.TrimRightFunc(text, unicode.IsSpace) != text
}

// word writes text after the pending line breaks or space.
func (w *textWriter) word(text string) {
	switch {
	case w.b.Len() == 0 || w.item:
	case w.breaks > 0:
		w.b.WriteString(strings.Repeat("\n", w.breaks))
	case w.space:
		w.b.WriteByte(' ')
	}
	w.breaks, w.space, w.item = 0, false, false
	w.b.WriteString(text)
}

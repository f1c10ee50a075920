package extract

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// plainStructure changes the content so that every element keeps its meaning without
// style sheets: formulas, superscripts and the numbers of lists become text, and
// elements that are displayed as blocks become div elements.
func (c *Content) plainStructure() {
	if !c.isPlain {
		replaceFormulas(c.node)
		simplifyElements(c.node)
		c.isPlain = true
	}
}

// blockDisplay matches the style of an element that is displayed as a block.
var blockDisplay = regexp.MustCompile(`(^|;)display:(block|flex|grid|table|list-item|flow-root)(;|!|$)`)

// wrapStyledBlock puts an inline element whose style makes it a block into a div
// element.
func wrapStyledBlock(n *html.Node) {
	switch n.DataAtom {
	case atom.Span, atom.A, atom.B, atom.Strong, atom.I, atom.Em, atom.Small, atom.Code, atom.Label, atom.Cite, atom.Time, atom.Abbr, atom.U, atom.Font:
	default:
		return
	}
	if n.Parent == nil || !blockDisplay.MatchString(compactStyle(n)) {
		return
	}
	div := &html.Node{Type: html.ElementNode, DataAtom: atom.Div, Data: "div"}
	n.Parent.InsertBefore(div, n)
	n.Parent.RemoveChild(n)
	div.AppendChild(n)
}

// compactStyle returns the style attribute in lower case, without spaces.
func compactStyle(n *html.Node) string {
	return strings.Join(strings.Fields(strings.ToLower(attr(n, "style"))), "")
}

// simplifyElements applies plainStructure to the elements below n.
func simplifyElements(n *html.Node) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		if c.Type == html.ElementNode {
			simplifyElements(c)
			simplifyElement(c)
		}
		c = next
	}
}

func simplifyElement(n *html.Node) {
	switch n.DataAtom {
	case atom.Summary, atom.Legend, atom.Center, atom.Caption, atom.Option, atom.Optgroup, atom.Hgroup:
		if n.DataAtom != atom.Caption || n.Parent.DataAtom != atom.Table {
			rename(n, atom.Div)
		}
	case atom.Menu, atom.Dir:
		rename(n, atom.Ul)
	case atom.Sup:
		markScript(n, "^")
	case atom.Sub:
		markScript(n, subscriptMark)
	case atom.Q:
		surround(n, "“", "”")
	case atom.Rt:
		if n.PrevSibling == nil || n.PrevSibling.DataAtom != atom.Rp {
			surround(n, "(", ")")
		}
	case atom.Ol:
		splitList(n)
	default:
		if n.Data == "search" || strings.Contains(n.Data, "-") && n.Namespace == "" {
			separateCustom(n)
		}
	}
}

// surround adds text at the beginning and the end of an element.
func surround(n *html.Node, before, after string) {
	if before != "" {
		n.InsertBefore(textNode(before), n.FirstChild)
	}
	if after != "" {
		n.AppendChild(textNode(after))
	}
}

// separateCustom makes an element that HTML does not define a block if it contains
// blocks or is next to another such element. Otherwise it separates its words from
// those around it.
func separateCustom(n *html.Node) {
	hasBlock := find(n, func(c *html.Node) bool { return c != n && isBlock(c) }) != nil
	if n.Data == "search" || hasBlock || isCustomSibling(n.PrevSibling, false) || isCustomSibling(n.NextSibling, true) {
		rename(n, atom.Div)
		return
	}
	isWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	first, last := edgeRune(n, false), edgeRune(n, true)
	if isWord(first) && isWord(neighbour(n, true)) {
		n.Parent.InsertBefore(textNode(" "), n)
	}
	if isWord(last) && isWord(neighbour(n, false)) {
		n.Parent.InsertBefore(textNode(" "), n.NextSibling)
	}
}

// isCustomSibling reports whether a sibling, directly or after spaces, is an element
// that HTML does not define, or one that was made a block.
func isCustomSibling(n *html.Node, forward bool) bool {
	for n != nil && n.Type == html.TextNode && strings.TrimSpace(n.Data) == "" {
		if forward {
			n = n.NextSibling
		} else {
			n = n.PrevSibling
		}
	}
	return n != nil && n.Type == html.ElementNode && (strings.Contains(n.Data, "-") || n.DataAtom == atom.Div)
}

// isBlock reports whether an element is a block element of HTML.
func isBlock(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Dd, atom.Details, atom.Div, atom.Dl, atom.Dt, atom.Fieldset, atom.Figcaption, atom.Figure,
		atom.Footer, atom.Form, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Header, atom.Hr, atom.Li, atom.Main, atom.Nav, atom.Ol, atom.P, atom.Pre,
		atom.Section, atom.Table, atom.Td, atom.Th, atom.Ul:
		return true
	}
	return false
}

// maxScript is the maximum length of a superscript or subscript; longer ones are
// ordinary text.
const maxScript = 200

// markScript converts a superscript or subscript to text: 10^6, 10^(-3). Note marks in
// brackets, ordinals and signs such as ® need no mark.
func markScript(n *html.Node, mark string) {
	text := strings.TrimSpace(shortText(n, maxScript))
	before, after := neighbour(n, true), neighbour(n, false)
	switch {
	case text == "" || text[0] == '[' || isSign(text):
		return
	case mark == "^" && unicode.IsDigit(before) && isOrdinal(text):
		return
	case n.DataAtom == atom.Sub && isFraction(n.PrevSibling):
		return // the denominator
	case n.DataAtom == atom.Sup && isNumerator(n):
		if unicode.IsLetter(before) || unicode.IsDigit(before) {
			n.Parent.InsertBefore(textNode(" "), n)
		}
		return
	}
	writeMark(n, mark, text, after)
}

// writeMark adds the mark, with parentheses unless the script is one name or number
// that the text after it does not continue.
func writeMark(n *html.Node, mark, text string, after rune) {
	if inside(n, atom.Code) || inside(n, atom.Pre) {
		mark = plainMark(mark)
	}
	if c := n.FirstChild; c == n.LastChild && c.Type == html.TextNode {
		c.Data = strings.ReplaceAll(strings.TrimSpace(c.Data), "−", "-")
	}
	last, _ := utf8.DecodeLastRuneInString(text)
	switch {
	case text[0] == '(' && strings.IndexByte(text, ')') == len(text)-1:
		surround(n, mark, "")
	case (isAtom(text) || text == "+" || text == "-" || text == "−") && !(unicode.IsDigit(last) && unicode.IsDigit(after) || unicode.IsLetter(last) && unicode.IsLetter(after)):
		surround(n, mark, "")
	default:
		surround(n, mark+"(", ")")
	}
}

// plainMark returns the mark of a subscript or superscript in text.
func plainMark(mark string) string { return strings.ReplaceAll(mark, subscriptMark, "_") }

// isSign reports whether a superscript is a sign that needs no mark.
func isSign(text string) bool {
	switch text {
	case "TM", "SM", "+", "-", "−":
		return text == "TM" || text == "SM"
	}
	r, size := utf8.DecodeRuneInString(text)
	return size == len(text) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// isOrdinal reports whether a superscript after a number makes it an ordinal.
func isOrdinal(text string) bool {
	switch strings.ToLower(text) {
	case "st", "nd", "rd", "th", "er", "re", "ère", "nde", "ème", "eme", "os", "as", "º", "ª":
		return true
	}
	return false
}

// isFraction reports whether a text is the slash of a fraction.
func isFraction(n *html.Node) bool {
	return n != nil && n.Type == html.TextNode && strings.Trim(strings.TrimSpace(n.Data), "/⁄∕") == "" && strings.TrimSpace(n.Data) != ""
}

// isNumerator reports whether a superscript is followed by a slash and a subscript.
func isNumerator(n *html.Node) bool {
	return isFraction(n.NextSibling) && n.NextSibling.NextSibling != nil && n.NextSibling.NextSibling.DataAtom == atom.Sub
}

// neighbour returns the character directly before or after an element in its block, or
// 0 if there is none.
func neighbour(n *html.Node, before bool) rune {
	for ; n != nil && n.Type == html.ElementNode && !isBlock(n); n = n.Parent {
		sibling := n.NextSibling
		if before {
			sibling = n.PrevSibling
		}
		if sibling == nil {
			continue
		}
		if sibling.Type == html.ElementNode && (isBlock(sibling) || sibling.DataAtom == atom.Br) {
			return 0
		}
		return edgeRune(sibling, before)
	}
	return 0
}

// edgeRune returns the first or the last character of a node.
func edgeRune(n *html.Node, last bool) rune {
	for n != nil && n.Type != html.TextNode {
		if last {
			n = n.LastChild
		} else {
			n = n.FirstChild
		}
	}
	if n == nil || n.Data == "" {
		return 0
	}
	r, _ := utf8.DecodeRuneInString(n.Data)
	if last {
		r, _ = utf8.DecodeLastRuneInString(n.Data)
	}
	return r
}

// splitList splits a numbered list into lists with consecutive numbers, if values or a
// reversed order require it.
func splitList(list *html.Node) {
	number, step := 1, 1
	if hasAttr(list, "reversed") {
		number, step = countItems(list), -1
	}
	if n, err := strconv.Atoi(strings.TrimSpace(attr(list, "start"))); err == nil {
		number = n
	}
	expected, isFirst, current := number, true, list
	for c := list.FirstChild; c != nil; {
		next := c.NextSibling
		if c.DataAtom == atom.Li {
			if n, err := strconv.Atoi(strings.TrimSpace(attr(c, "value"))); err == nil {
				number = n
			}
			if number != expected && !isFirst {
				rest := &html.Node{Type: html.ElementNode, DataAtom: atom.Ol, Data: "ol"}
				list.Parent.InsertBefore(rest, current.NextSibling)
				current = rest
			}
			if number != expected || isFirst {
				setAttr(current, "start", strconv.Itoa(number))
			}
			setAttr(c, "value", strconv.Itoa(number))
			expected, isFirst = number+1, false
			number += step
		}
		if current != list {
			list.RemoveChild(c)
			current.AppendChild(c)
		}
		c = next
	}
}

// countItems returns the number of items of a list.
func countItems(list *html.Node) int {
	count := 0
	for c := list.FirstChild; c != nil; c = c.NextSibling {
		if c.DataAtom == atom.Li {
			count++
		}
	}
	return count
}

// shortText returns the text below n, or "" if it is longer than a limit.
func shortText(n *html.Node, limit int) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
		if b.Len() > limit {
			return ""
		}
	}
	return b.String()
}

package extract

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// codeLanguage finds the name of a language in the classes that highlighters
// use: language-go, lang-go, highlight-source-go, brush: go, sourceCode go.
var codeLanguage = regexp.MustCompile(`(?i)(?:^|\s)(?:language-|lang-|highlight-source-|highlight-text-|highlight-|brush:\s*|sourceCode\s+|src-|hljs\s+)([a-z][a-z0-9+#._-]{0,30})`)

// normaliseCode makes each block of code a pre element with a code element of the
// class language-NAME, in whatever form the highlighter left it. It removes line
// numbers.
func normaliseCode(body *html.Node) {
	var blocks []*html.Node
	inTable := map[*html.Node]int{} // blocks by table
	elements(body, func(n *html.Node) {
		switch n.DataAtom {
		case atom.Listing, atom.Plaintext, atom.Xmp:
			rename(n, atom.Pre)
		}
		if n.DataAtom == atom.Pre {
			blocks = append(blocks, n)
			inTable[tableOf(n)]++
		}
	})
	for _, pre := range blocks {
		name := languageOf(pre)
		removeAll(pre, isLineNumber)
		var b strings.Builder
		codeText(&b, pre)
		text := strings.Trim(strings.ReplaceAll(b.String(), "\r\n", "\n"), "\n")
		for pre.FirstChild != nil {
			pre.RemoveChild(pre.FirstChild)
		}
		code := &html.Node{Type: html.ElementNode, DataAtom: atom.Code, Data: "code"}
		if name != "" {
			setAttr(code, "class", "language-"+name)
		}
		code.AppendChild(&html.Node{Type: html.TextNode, Data: text})
		pre.AppendChild(code)
		pre.Attr = nil
		if table := tableOf(pre); table != nil && inTable[table] <= maxCodeBlocks {
			unwrapCodeTable(table, pre)
		}
	}
}

// maxCodeBlocks is the number of blocks in a table that only lays out code: the code,
// and perhaps its line numbers.
const maxCodeBlocks = 2

// tableOf returns the table around an element; nil if there is none.
func tableOf(n *html.Node) *html.Node {
	for p := n.Parent; p != nil; p = p.Parent {
		if p.DataAtom == atom.Table {
			return p
		}
	}
	return nil
}

// codeText writes the text of a block of code, in which br elements and
// elements for lines end a line.
func codeText(b *strings.Builder, n *html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type == html.TextNode:
			b.WriteString(c.Data)
		case c.DataAtom == atom.Br:
			b.WriteByte('\n')
		case c.DataAtom == atom.Sup || c.DataAtom == atom.Sub:
			simplifyElement(c)
			codeText(b, c)
		case c.DataAtom == atom.Div || c.DataAtom == atom.P || c.DataAtom == atom.Li || c.DataAtom == atom.Tr:
			if text := b.String(); text != "" && !strings.HasSuffix(text, "\n") {
				b.WriteByte('\n')
			}
			codeText(b, c)
			b.WriteByte('\n')
		default:
			codeText(b, c)
		}
	}
}

var lineNumber = regexp.MustCompile(`(?i)(^|[\s_-])(line-?numbers?|linenos?|gutter|lnt?|hl-line-number|code-copy|copy-?button)($|[\s_-])`)

func isLineNumber(n *html.Node) bool {
	return lineNumber.MatchString(attr(n, "class")) || hasAttr(n, "data-line-number") && textOf(n) == attr(n, "data-line-number")
}

// languageOf returns the language of a block of code, which its element, the code
// element in it, or one of two enclosing elements names.
func languageOf(pre *html.Node) string {
	candidates := []*html.Node{pre}
	if code := find(pre, func(n *html.Node) bool { return n.DataAtom == atom.Code }); code != nil {
		candidates = append([]*html.Node{code}, candidates...)
	}
	for p, i := pre.Parent, 0; p != nil && i < 2; p, i = p.Parent, i+1 {
		candidates = append(candidates, p)
	}
	for _, n := range candidates {
		for _, name := range []string{"data-lang", "data-language"} {
			if v := attr(n, name); v != "" && !strings.ContainsAny(v, " \n`") {
				return strings.ToLower(v)
			}
		}
		if m := codeLanguage.FindStringSubmatch(attr(n, "class")); m != nil {
			if name := strings.ToLower(m[1]); name != "none" && name != "plaintext" && name != "highlight" {
				return name
			}
		}
	}
	return ""
}

// unwrapCodeTable replaces a table of line numbers and a block of code with the
// block.
func unwrapCodeTable(table, pre *html.Node) {
	if table.Parent == nil || strings.Trim(textOf(table), "0123456789 ") != strings.Trim(textOf(pre), "0123456789 ") {
		return
	}
	if strings.Trim(textOf(pre), "0123456789 ") == "" {
		return // the line numbers
	}
	pre.Parent.RemoveChild(pre)
	table.Parent.InsertBefore(pre, table)
	table.Parent.RemoveChild(table)
}

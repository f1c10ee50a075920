package extract

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// xhtmlStart matches the beginning of a page in XML syntax.
var xhtmlStart = regexp.MustCompile(`(?is)^\s*(<\?xml[\s>?]|(<!--.*?-->\s*|<!doctype[^>]*>\s*)*<html[^>]*\sxmlns\s*=)`)

// unquotedValue matches a tag that ends with an unquoted attribute.
var unquotedValue = regexp.MustCompile(`=[^\s"'>]*/>$`)

// expandXHTML converts a page from XML syntax to HTML syntax, which has neither
// <script/> for an empty element nor CDATA sections.
func expandXHTML(text string) string {
	if !strings.Contains(text, "/>") && !strings.Contains(text, "<![CDATA[") {
		return text
	}
	var out strings.Builder
	tokens := html.NewTokenizer(strings.NewReader(text))
	tokens.AllowCDATA(true)
	for {
		kind := tokens.Next()
		raw := tokens.Raw()
		switch kind {
		case html.ErrorToken:
			out.Write(raw)
			return out.String()
		case html.TextToken:
			if strings.HasPrefix(string(raw[:min(len(raw), 9)]), "<![CDATA[") {
				out.WriteString(html.EscapeString(string(tokens.Text())))
				continue
			}
		case html.SelfClosingTagToken:
			if unquotedValue.Match(raw) {
				break // the / belongs to the attribute
			}
			tokens.NextIsNotRawText()
			out.WriteString(strings.TrimRight(string(raw[:len(raw)-2]), " \t\r\n") + " >")
			if name, _ := tokens.TagName(); !isVoidElement(atom.Lookup(name)) {
				out.WriteString("</" + string(name) + ">")
			}
			continue
		}
		out.Write(raw)
	}
}

// isVoidElement reports whether an HTML element has no end tag.
func isVoidElement(tag atom.Atom) bool {
	switch tag {
	case atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input, atom.Link, atom.Meta, atom.Param, atom.Source, atom.Track, atom.Wbr:
		return true
	}
	return false
}

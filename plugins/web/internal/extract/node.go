package extract

import (
	"strings"

	"golang.org/x/net/html"
)

// find returns the first element in document order that match accepts, or nil.
func find(n *html.Node, match func(*html.Node) bool) *html.Node {
	if n.Type == html.ElementNode && match(n) {
		return n
	}
	for c := range n.Descendants() {
		if c.Type == html.ElementNode && match(c) {
			return c
		}
	}
	return nil
}

// elements calls f for each element below n in document order.
func elements(n *html.Node, f func(*html.Node)) {
	for c := range n.Descendants() {
		if c.Type == html.ElementNode {
			f(c)
		}
	}
}

// attr returns an attribute; "" if it is absent.
func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name && a.Namespace == "" {
			return a.Val
		}
	}
	return ""
}

func hasAttr(n *html.Node, name string) bool {
	for _, a := range n.Attr {
		if a.Key == name {
			return true
		}
	}
	return false
}

func setAttr(n *html.Node, name, val string) {
	for i := range n.Attr {
		if n.Attr[i].Key == name {
			n.Attr[i].Val = val
			return
		}
	}
	n.Attr = append(n.Attr, html.Attribute{Key: name, Val: val})
}

// removeAll removes the elements below n that match accepts.
func removeAll(n *html.Node, match func(*html.Node) bool) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		if c.Type == html.CommentNode || c.Type == html.ElementNode && match(c) {
			n.RemoveChild(c)
		} else {
			removeAll(c, match)
		}
		c = next
	}
}

// clone returns a deep copy.
func clone(n *html.Node) *html.Node {
	c := &html.Node{Type: n.Type, DataAtom: n.DataAtom, Data: n.Data, Namespace: n.Namespace, Attr: append([]html.Attribute(nil), n.Attr...)}
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		c.AppendChild(clone(child))
	}
	return c
}

// textOf returns the text below n with single spaces.
func textOf(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
			b.WriteByte(' ')
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// textLength is the number of bytes of the text below n, without spaces.
func textLength(n *html.Node) int {
	length := 0
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			length += wordLength(c.Data)
		}
	}
	return length
}

// wordLength is the number of bytes of a text without spaces.
func wordLength(text string) int {
	length := 0
	for word := range strings.FieldsSeq(text) {
		length += len(word)
	}
	return length
}

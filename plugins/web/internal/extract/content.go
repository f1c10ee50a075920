package extract

import (
	"regexp"
	"strings"

	"codeberg.org/readeck/go-readability/v2"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Content is the content of a document, ready for conversion. A conversion changes
// it: call HTML, Text and Markdown in this order, each at most once.
type Content struct {
	node           *html.Node // nil if the document is not HTML
	text, markdown string
	isPlain        bool // plainStructure was called
}

const (
	// maxScored bounds the number of elements of a page that readability scores;
	// a larger page is only pruned.
	maxScored = 50_000
	// minContent is the text length below which a result of readability is compared
	// with the page.
	minContent = 250
)

// Content returns the content of the page: all of it, or its main part without
// navigation, headers, footers, sidebars and advertisements. It consumes the page, so
// that a large page is in memory only once: call it at most once.
func (d *Document) Content(mainOnly bool) *Content {
	if d.root == nil {
		return &d.plain
	}
	root := d.root
	d.root = nil
	body := find(root, func(n *html.Node) bool { return n.DataAtom == atom.Body })
	if body == nil {
		return &Content{node: root}
	}
	isolateFormulas(body)
	removeAll(body, isInvisible)
	d.resolveLinks(body)
	normaliseCode(body)
	if mainOnly {
		body = d.mainContent(body)
	}
	return &Content{node: body}
}

// isInvisible reports whether an element has no visible content.
func isInvisible(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Template, atom.Noscript, atom.Iframe, atom.Object, atom.Embed, atom.Canvas, atom.Audio, atom.Video,
		atom.Link, atom.Meta, atom.Base, atom.Button, atom.Input, atom.Select, atom.Textarea, atom.Dialog:
		return true
	}
	if n.Namespace == "svg" || n.Data == "svg" {
		return true
	}
	if hasAttr(n, "hidden") || attr(n, "aria-hidden") == "true" && n.DataAtom != atom.Span {
		return true
	}
	style := compactStyle(n)
	return strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden")
}

var (
	boilerplate = regexp.MustCompile(`(?i)(^|[\s_-])(nav|navbar|navigation|menu|breadcrumbs?|sidebar|side-?bar|footer|site-footer|cookies?|consent|gdpr|newsletter|subscribe|subscription|social|share|sharing|related|recommended|recommendations|advert|advertisement|ads?|sponsor|sponsored|promo|banner|popup|modal|overlay|pagination|pager|comments?|disqus|toc|skip-?link|print-?only|masthead|toolbar|widget|tags?-?(list|cloud)|author-?(bio|box)|login|signup|editsection|hatnote|jump-?link|catlinks|sitenotice|sitesub|postprofile|user-?(info|card|profile)|signature|action-?bar|stat-?block|noprint)($|[\s_-])`)
	content     = regexp.MustCompile(`(?i)(^|[\s_-])(article|body|content|entry|main|post|story|text)($|[\s_-])`)
)

// isBoilerplate reports whether an element declares that it is not part of the main
// content.
func isBoilerplate(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Nav, atom.Aside, atom.Form:
		return true
	case atom.Footer:
		return !inside(n, atom.Blockquote)
	case atom.Header:
		return !inside(n, atom.Article) && !inside(n, atom.Main)
	}
	switch attr(n, "role") {
	case "navigation", "banner", "contentinfo", "complementary", "search", "dialog", "alertdialog", "menu", "menubar", "alert":
		return true
	}
	return false
}

// isNamedBoilerplate reports whether the class or id of an element marks boilerplate.
// An id of many words belongs to a heading.
func isNamedBoilerplate(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Main, atom.Article, atom.Body, atom.Pre, atom.Code, atom.Table, atom.Tbody, atom.Tr, atom.Td, atom.H1, atom.H2, atom.H3:
		return false
	}
	name := attr(n, "class")
	if id := attr(n, "id"); strings.Count(id, "-")+strings.Count(id, "_") < maxIDWords {
		name += " " + id
	}
	return boilerplate.MatchString(name) && !content.MatchString(name)
}

const maxIDWords = 3

// measureNamed returns the length of the text below n, as textLength does, and
// records it for elements whose class or id marks boilerplate.
func measureNamed(n *html.Node, named map[*html.Node]int) int {
	length := 0
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch c.Type {
		case html.TextNode:
			length += wordLength(c.Data)
		case html.ElementNode:
			own := measureNamed(c, named)
			if isNamedBoilerplate(c) {
				named[c] = own
			}
			length += own
		}
	}
	return length
}

// lengthWithout returns the length of the text below n, as textLength does, without
// elements that match accepts.
func lengthWithout(n *html.Node, match func(*html.Node) bool) int {
	length := 0
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type == html.TextNode:
			length += wordLength(c.Data)
		case c.Type == html.ElementNode && !match(c):
			length += lengthWithout(c, match)
		}
	}
	return length
}

func inside(n *html.Node, a atom.Atom) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		if p.DataAtom == a {
			return true
		}
	}
	return false
}

// mainContent returns the main part of a body, which it changes. It removes
// boilerplate and returns the part that the page marks as its content, or that
// readability finds. If almost nothing is left, the page is a list or unusual, and
// everything is returned.
func (d *Document) mainContent(body *html.Node) *html.Node {
	named := map[*html.Node]int{}
	length := measureNamed(body, named)
	isOther := func(n *html.Node) bool {
		own, isNamed := named[n]
		return isBoilerplate(n) || isNamed && own <= length*2/5
	}
	pruned := lengthWithout(body, isOther)
	if pruned < minContent && pruned < length/4 {
		pruned = length
	} else {
		removeAll(body, isOther)
	}
	if marked := markedContent(body, pruned); marked != nil {
		return marked
	}
	if scored := d.readable(body); scored != nil && textLength(scored) >= min(minContent, max(pruned/3, 1)) {
		addHeading(scored, body)
		return scored
	}
	return body
}

// addHeading puts the only main heading of a body before its content, because
// readability omits it. A heading that is a link is the name of a site.
func addHeading(content, body *html.Node) {
	isHeading := func(n *html.Node) bool { return n.DataAtom == atom.H1 }
	if find(content, isHeading) != nil {
		return
	}
	var headings []*html.Node
	elements(body, func(n *html.Node) {
		if isHeading(n) {
			headings = append(headings, n)
		}
	})
	if len(headings) == 1 && find(headings[0], func(n *html.Node) bool { return n.DataAtom == atom.A }) == nil {
		content.InsertBefore(clone(headings[0]), content.FirstChild)
	}
}

// markedContent returns the only element that the page marks as its main content, if
// it has most of the text.
func markedContent(body *html.Node, length int) *html.Node {
	for _, isMarked := range []func(*html.Node) bool{
		func(n *html.Node) bool {
			return n.DataAtom == atom.Article || attr(n, "role") == "article" || attr(n, "itemprop") == "articleBody"
		},
		func(n *html.Node) bool { return n.DataAtom == atom.Main || attr(n, "role") == "main" },
	} {
		var best *html.Node
		count := 0
		elements(body, func(n *html.Node) {
			if isMarked(n) {
				if best == nil {
					best = n
				}
				if n == best || !within(n, best) {
					count++
				}
			}
		})
		if count == 1 && textLength(best) >= length/2 {
			return best
		}
	}
	return nil
}

func within(n, ancestor *html.Node) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		if p == ancestor {
			return true
		}
	}
	return false
}

// readable returns the main content according to readability; nil if it finds none.
func (d *Document) readable(body *html.Node) *html.Node {
	count := 0
	elements(body, func(*html.Node) { count++ })
	if count > maxScored {
		d.Notes = append(d.Notes, "the page is too large to search for its main content; navigation that is not marked as such is included")
		return nil
	}
	root := &html.Node{Type: html.ElementNode, DataAtom: atom.Html, Data: "html"}
	root.AppendChild(&html.Node{Type: html.ElementNode, DataAtom: atom.Head, Data: "head"})
	root.AppendChild(clone(body))
	document := &html.Node{Type: html.DocumentNode}
	document.AppendChild(root)
	parser := readability.NewParser()
	parser.KeepClasses = true
	parser.DisableJSONLD = true
	article, err := parser.ParseAndMutate(document, d.URL)
	if err != nil {
		return nil
	}
	return article.Node
}

package extract

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/the-edge-agent/tea/plugins/web/internal/page"
)

// maxLinks bounds the number of links of a page.
const maxLinks = 20_000

// Links returns the links of the whole page in document order, each address once,
// except links to a part of the page itself.
func (d *Document) Links() []page.Link {
	if d.hasMoreLinks {
		d.Notes = append(d.Notes, fmt.Sprintf("the page has too many links; only the first %d were read", maxLinks))
		d.hasMoreLinks = false
	}
	return d.links
}

// readLinks collects the links of the page.
func (d *Document) readLinks() {
	var links []page.Link
	seen := map[string]bool{}
	elements(d.root, func(n *html.Node) {
		if n.DataAtom != atom.A && n.DataAtom != atom.Area || len(links) >= maxLinks {
			return
		}
		href := strings.TrimSpace(attr(n, "href"))
		if strings.HasPrefix(href, "#") {
			return
		}
		u := d.absolute(href)
		if u == "" || seen[u] || !strings.HasPrefix(u, "http") {
			return
		}
		seen[u] = true
		text := inlineText(n)
		if text == "" {
			text = linkLabel(n)
		}
		links = append(links, page.Link{URL: u, Text: clean(text)})
	})
	d.links, d.hasMoreLinks = links, len(links) == maxLinks
}

// linkLabel returns a text for a link without text.
func linkLabel(n *html.Node) string {
	if label := attr(n, "aria-label") + attr(n, "title"); label != "" {
		return label
	}
	if image := find(n, func(n *html.Node) bool { return n.DataAtom == atom.Img }); image != nil {
		return attr(image, "alt")
	}
	return attr(n, "alt")
}

// resolveLinks makes the addresses of links and images absolute. It removes addresses of
// anything but pages and pictures, pictures inside the page's text, which may be huge,
// and attributes that are code or style.
func (d *Document) resolveLinks(body *html.Node) {
	var all []*html.Node
	elements(body, func(n *html.Node) { all = append(all, n) })
	for _, n := range all {
		wrapStyledBlock(n)
		n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool { return strings.HasPrefix(a.Key, "on") || a.Key == "style" })
		switch n.DataAtom {
		case atom.A:
			if href := attr(n, "href"); href != "" {
				setAttr(n, "href", d.absolute(href))
			}
		case atom.Img:
			d.resolveImage(n)
		case atom.Blockquote, atom.Q, atom.Ins, atom.Del:
			if cite := attr(n, "cite"); cite != "" {
				setAttr(n, "cite", d.absolute(cite))
			}
		}
	}
	removeAll(body, func(n *html.Node) bool { return n.DataAtom == atom.Img && attr(n, "src") == "" })
}

// resolveImage sets src, including that of a picture that the page's scripts would
// load later.
func (d *Document) resolveImage(n *html.Node) {
	for _, name := range []string{"data-src", "data-original", "data-lazy-src", "src"} {
		if src := attr(n, name); src != "" && !strings.HasPrefix(src, "data:") {
			if u := d.absolute(src); u != "" {
				setAttr(n, "src", u)
				break
			}
		}
		if name == "src" {
			setAttr(n, "src", "")
		}
	}
	kept := n.Attr[:0]
	for _, a := range n.Attr {
		switch a.Key {
		case "src", "alt", "title", "width", "height":
			kept = append(kept, a)
		}
	}
	n.Attr = kept
}

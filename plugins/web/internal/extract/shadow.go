package extract

import (
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// openShadowRoots replaces the content of elements that have a declarative shadow root
// with what a browser shows: the content of the root, with the element's own content in
// its slots.
func openShadowRoots(n *html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		openShadowRoots(c)
	}
	root := shadowRoot(n)
	if root == nil {
		return
	}
	n.RemoveChild(root)
	bySlot := map[string][]*html.Node{}
	for n.FirstChild != nil {
		c := n.FirstChild
		n.RemoveChild(c)
		if c.Type == html.CommentNode {
			continue
		}
		bySlot[attr(c, "slot")] = append(bySlot[attr(c, "slot")], c)
	}
	var slots []*html.Node
	elements(root, func(c *html.Node) {
		if c.DataAtom == atom.Slot {
			slots = append(slots, c)
		}
	})
	for _, slot := range slots {
		name := attr(slot, "name")
		assigned := bySlot[name]
		delete(bySlot, name)
		for _, c := range assigned {
			slot.Parent.InsertBefore(c, slot)
		}
		for slot.FirstChild != nil {
			c := slot.FirstChild
			slot.RemoveChild(c)
			if len(assigned) == 0 {
				slot.Parent.InsertBefore(c, slot)
			}
		}
		slot.Parent.RemoveChild(slot)
	}
	for root.FirstChild != nil {
		c := root.FirstChild
		root.RemoveChild(c)
		n.AppendChild(c)
	}
}

// shadowRoot returns the first declarative shadow root of an element.
func shadowRoot(n *html.Node) *html.Node {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.DataAtom == atom.Template && (attr(c, "shadowrootmode") != "" || attr(c, "shadowroot") != "") {
			return c
		}
	}
	return nil
}

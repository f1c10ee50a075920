package spec

import "github.com/the-edge-agent/tea/host/internal/source"

// newTree makes a Tree of a value.
func newTree(v element) *Tree {
	t := &Tree{Pos: v.pos(), Value: v.node.Value(), Places: map[string]Text{}}
	t.place(v, "")
	return t
}

// place notes the strings inside v; inner is the path from the tree's root.
func (t *Tree) place(v element, inner string) {
	switch v.node.Kind {
	case source.String:
		t.Places[inner] = v.text()
	case source.List:
		for i, item := range v.items() {
			t.place(item, source.Index(inner, i))
		}
	case source.Map:
		for _, e := range v.entries() {
			t.place(e.element, source.Key(inner, e.key.Text))
		}
	}
}

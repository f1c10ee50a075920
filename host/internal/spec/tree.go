package spec

import (
	"github.com/the-edge-agent/tea/host/internal/source"
	"github.com/the-edge-agent/tea/sdk/diag"
)

// newTree returns the Tree of a value.
func newTree(v element) *Tree {
	t := &Tree{Pos: v.pos(), Value: v.node.Value(), Places: map[string]Text{}, root: v}
	t.place(v, "")
	return t
}

// place records the strings inside v; inner is the path from the tree's root.
func (t *Tree) place(v element, inner string) {
	switch v.node.Kind {
	case source.String:
		t.Places[inner] = v.text()
	case source.List:
		for i, item := range v.items() {
			t.place(item, diag.Index(inner, i))
		}
	case source.Map:
		for _, e := range v.entries() {
			t.place(e.element, diag.Key(inner, e.key.Text))
		}
	}
}

// KeyPos returns the position of the key of the value at a path, or of the
// value if it has no key.
func (t *Tree) KeyPos(path string) diag.Pos {
	key, v := find(t.root, nil, "", path)
	pos := t.posOf(v)
	if key != nil {
		pos.Line, pos.Column = key.Line, key.Column
	}
	return pos
}

// ValuePos returns the position of the value at a path.
func (t *Tree) ValuePos(path string) diag.Pos {
	_, v := find(t.root, nil, "", path)
	return t.posOf(v)
}

func (t *Tree) posOf(v element) diag.Pos {
	if v.node == nil {
		return t.Pos
	}
	return v.pos()
}

// find looks for the value at a path inside v, whose own path is inner.
func find(v element, key *source.Node, inner, path string) (*source.Node, element) {
	if inner == path {
		return key, v
	}
	if v.node == nil {
		return nil, element{}
	}
	for i, item := range v.items() {
		if k, found := find(item, nil, diag.Index(inner, i), path); found.node != nil {
			return k, found
		}
	}
	for _, e := range v.entries() {
		if k, found := find(e.element, e.key, diag.Key(inner, e.key.Text), path); found.node != nil {
			return k, found
		}
	}
	return nil, element{}
}

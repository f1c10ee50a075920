package source

import (
	"slices"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// deleteKey marks an element of an overlay that removes the document's element.
const deleteKey = "__delete__"

// Merger applies overlays to documents. Mappings are merged deeply, other values
// are replaced; each value keeps its position in its file.
type Merger struct {
	// Identity returns, for a top-level key, the identity of an element of its
	// list: elements with equal identity are merged, others are added at the end.
	// Such a list can also be written as a mapping from identity to element;
	// NameKey is the key of the identity in the list form.
	Identity map[string]func(element *Node) string
	NameKey  string
	// Spelling returns the canonical spelling of a key inside those elements.
	Spelling func(key string) string
	// Deleted, if not nil, is called for each element of such a list that is
	// removed by over.
	Deleted func(list string, element, over *Node)
	Diags   *diag.List
}

// Merge returns base with over applied to it. Both must be mappings; neither is
// changed.
func (m *Merger) Merge(base, over *Node) *Node {
	return m.mappings(base, over, "", identity)
}

func identity(key string) string { return key }

// mappings merges two mappings. Keys with the same spelling are the same key.
func (m *Merger) mappings(base, over *Node, path string, spelling func(string) string) *Node {
	merged := *base
	merged.Members = slices.Clone(base.Members)
	for _, member := range over.Members {
		at := diag.Key(path, member.Key.Text)
		if path != "" && member.Key.Text == deleteKey {
			continue
		}
		i := slices.IndexFunc(merged.Members, func(other Member) bool { return spelling(other.Key.Text) == spelling(member.Key.Text) })
		switch deleted := m.deletes(member.Value, at); {
		case deleted && i >= 0:
			merged.Members = slices.Delete(merged.Members, i, i+1)
		case deleted:
			m.nothingToDelete(member.Value, at)
		case i >= 0:
			merged.Members[i] = Member{Key: member.Key, Value: m.values(merged.Members[i].Value, member.Value, at, identity)}
		default:
			merged.Members = append(merged.Members, Member{Key: member.Key, Value: m.values(nil, member.Value, at, identity)})
		}
	}
	return &merged
}

// values merges the values of one key; base is nil if there is none.
func (m *Merger) values(base, over *Node, path string, spelling func(string) string) *Node {
	if identity := m.Identity[path]; identity != nil && (over.Kind == List || over.Kind == Map) {
		if base == nil || base.Kind != List && base.Kind != Map {
			base = &Node{Kind: over.Kind, File: over.File, Line: over.Line, Column: over.Column}
		}
		return m.lists(base, over, path, identity)
	}
	if over.Kind != Map {
		return over
	}
	if base == nil || base.Kind != Map {
		base = &Node{Kind: Map, File: over.File, Line: over.Line, Column: over.Column}
	}
	return m.mappings(base, over, path, spelling)
}

// named is an element with its identity; key is set in the mapping form.
type named struct {
	identity string
	key      *Node
	element  *Node
}

func elements(n *Node, identity func(*Node) string) []named {
	var list []named
	for _, item := range n.Items {
		list = append(list, named{identity(item), nil, item})
	}
	for _, member := range n.Members {
		list = append(list, named{member.Key.Text, member.Key, member.Value})
	}
	return list
}

// lists merges two lists by the identity of their elements. The result is a list
// or a mapping, like base.
func (m *Merger) lists(base, over *Node, path string, identity func(*Node) string) *Node {
	merged := elements(base, identity)
	taken := make([]bool, len(merged))
	for i, e := range elements(over, identity) {
		at := diag.Index(path, i)
		if e.key != nil {
			at = diag.Key(path, e.key.Text)
		}
		same := -1
		for j := range taken {
			if !taken[j] && e.identity != "" && merged[j].identity == e.identity {
				same = j
				break
			}
		}
		switch deleted := m.deletes(e.element, at); {
		case deleted && same >= 0:
			if m.Deleted != nil {
				m.Deleted(path, merged[same].element, e.element)
			}
			taken = slices.Delete(taken, same, same+1)
			merged = slices.Delete(merged, same, same+1)
		case deleted:
			m.nothingToDelete(e.element, at)
		case same >= 0:
			merged[same].element = m.values(merged[same].element, e.element, at, m.Spelling)
			taken[same] = true
		default:
			e.element = m.values(nil, e.element, at, m.Spelling)
			merged = append(merged, e)
		}
	}
	result := *base
	result.Items, result.Members = nil, nil
	for _, e := range merged {
		if base.Kind == Map {
			result.Members = append(result.Members, Member{Key: e.asKey(), Value: e.element})
		} else {
			result.Items = append(result.Items, e.asItem(m.NameKey))
		}
	}
	return &result
}

// asKey returns the key of an element in the mapping form.
func (e named) asKey() *Node {
	if e.key != nil {
		return e.key
	}
	return &Node{Kind: String, File: e.element.File, Line: e.element.Line, Column: e.element.Column, Text: e.identity}
}

// asItem returns the element in the list form: an element of a mapping gets its
// key as its name.
func (e named) asItem(nameKey string) *Node {
	if e.key == nil || e.element.Kind != Map && e.element.Kind != Null || e.element.Get(nameKey) != nil {
		return e.element
	}
	name := *e.key
	name.TextLine, name.TextColumn = name.Line, name.Column
	item := *e.element
	item.Kind = Map
	item.Members = slices.Insert(slices.Clone(item.Members), 0, Member{
		Key:   &Node{Kind: String, File: name.File, Line: name.Line, Column: name.Column, Text: nameKey},
		Value: &name,
	})
	return &item
}

// deletes reports whether a value of an overlay removes the document's value.
func (m *Merger) deletes(over *Node, path string) bool {
	mark := over.Get(deleteKey)
	if mark == nil {
		return false
	}
	if mark.Scalar != true {
		m.Diags.Errorf(diagcode.BadDelete, mark.Pos(diag.Key(path, deleteKey)), "write __delete__: true", "__delete__ must be true")
		return false
	}
	return true
}

func (m *Merger) nothingToDelete(over *Node, path string) {
	m.Diags.Warnf(diagcode.BadDelete, over.Get(deleteKey).Pos(path), "remove it, or correct the name", "there is nothing to delete here")
}

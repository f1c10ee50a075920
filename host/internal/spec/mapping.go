package spec

import (
	"math"
	"time"

	"github.com/the-edge-agent/tea/host/internal/source"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// mapping reads the keys of one mapping under their canonical names. A value of the
// wrong type, which the checker has reported, counts as absent.
type mapping struct {
	element
	section *section
	members []member
}

// member is a known key of a mapping and its value; both have the key's path.
type member struct {
	name       string // canonical
	key, value element
}

// element is a node with its path.
type element struct {
	node *source.Node
	path string
}

func openMapping(v element, s *section) mapping {
	s = s.variant(v.node)
	m := mapping{element: v, section: s, members: make([]member, 0, len(v.node.Members))}
	params := s.takesParams(v.node)
	for _, written := range v.node.Members {
		k := s.findIn(v.node, written.Key.Text)
		if k == nil || params && k.use == asParam || written.Value.Kind == source.Null && !k.shape.anything {
			continue
		}
		if !m.has(k.name) {
			path := diag.Key(v.path, written.Key.Text)
			m.members = append(m.members, member{k.name, element{written.Key, path}, element{written.Value, path}})
		}
	}
	return m
}

func (m mapping) member(name string) member {
	for _, found := range m.members {
		if found.name == name {
			return found
		}
	}
	return member{}
}

//go:noinline
func (v element) pos() diag.Pos { return v.node.Pos(v.path) }

//go:noinline
func (v element) is(kind source.Kind) bool { return v.node != nil && v.node.Kind == kind }

// text returns a scalar with the position of its content.
func (v element) text() Text {
	n := v.node
	t := Text{Pos: v.pos(), Value: n.Text, Block: n.Block, Cut: n.Cut, written: n.Written, quote: n.Quote}
	t.Line, t.Column = n.TextLine, n.TextColumn
	if b, ok := n.Scalar.(bool); ok {
		t.Value = map[bool]string{true: "true", false: "false"}[b]
	}
	return t
}

func (v element) scalar() bool {
	return v.node != nil && v.node.Kind != source.Null && v.node.Kind < source.List
}

// items returns the elements of a list; none for any other value.
func (v element) items() []element {
	if !v.is(source.List) {
		return nil
	}
	items := make([]element, len(v.node.Items))
	for i, n := range v.node.Items {
		items[i] = element{n, diag.Index(v.path, i)}
	}
	return items
}

// entries returns the keys and values of a mapping, in order.
func (v element) entries() []entry {
	if !v.is(source.Map) {
		return nil
	}
	entries := make([]entry, len(v.node.Members))
	for i, m := range v.node.Members {
		entries[i] = entry{m.Key, element{m.Value, diag.Key(v.path, m.Key.Text)}}
	}
	return entries
}

type entry struct {
	key *source.Node
	element
}

// get returns the value of a key; its node is nil if there is none. Like key, it is
// not inlined: its hundreds of calls would add 47 KB to the binary.
//
//go:noinline
func (m mapping) get(name string) element { return m.member(name).value }

// key returns the key itself, for messages about the key rather than its value.
//
//go:noinline
func (m mapping) key(name string) element { return m.member(name).key }

//go:noinline
func (m mapping) has(name string) bool { return m.get(name).node != nil }

func (m mapping) string(name string) string {
	if v := m.get(name); v.scalar() {
		return v.node.Text
	}
	return ""
}

// text returns a key's text; nil if the key is absent.
func (m mapping) text(name string) *Text {
	v := m.get(name)
	if !v.scalar() {
		return nil
	}
	t := v.text()
	return &t
}

func (m mapping) texts(name string) []Text {
	v := m.get(name)
	if v.is(source.String) {
		return []Text{v.text()}
	}
	var texts []Text
	for _, item := range v.items() {
		if item.is(source.String) {
			texts = append(texts, item.text())
		}
	}
	return texts
}

func (m mapping) bool(name string) *bool {
	if v := m.get(name); v.is(source.Bool) {
		b := v.node.Scalar.(bool)
		return &b
	}
	return nil
}

func (m mapping) isTrue(name string) bool {
	b := m.bool(name)
	return b != nil && *b
}

func (m mapping) int(name string) *int {
	v := m.get(name)
	if !v.is(source.Int) {
		return nil
	}
	n, ok := v.node.Scalar.(int64)
	if !ok {
		return nil
	}
	i := int(n)
	return &i
}

func (m mapping) float(name string) *float64 {
	v := m.get(name)
	if !v.is(source.Int) && !v.is(source.Float) {
		return nil
	}
	f, ok := value.Float(v.node.Scalar)
	if !ok {
		return nil
	}
	return &f
}

// duration returns a duration; a plain number is in the unit of the key.
func (m mapping) duration(name string) *time.Duration {
	v := m.get(name)
	unit := m.section.find(name).shape.duration
	if !v.scalar() || v.is(source.Bool) || unit == 0 {
		return nil
	}
	d, problem := duration(v.node, unit)
	if problem != "" {
		return nil
	}
	return &d
}

// object returns a mapping in the value model; nil if the key is absent.
func (m mapping) object(name string) map[string]any {
	v := m.get(name)
	if !v.is(source.Map) {
		return nil
	}
	return v.node.Value().(map[string]any)
}

// orZero returns *p, or the zero value for nil.
func orZero[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// maxDuration is small enough that sums of durations do not overflow.
const maxDuration = 100 * 365 * 24 * time.Hour

// duration reads a number of units, or a text such as 1m30s. The problem is ""
// if it is valid.
func duration(n *source.Node, unit time.Duration) (d time.Duration, problem string) {
	if n.Kind == source.String {
		parsed, err := time.ParseDuration(n.Text)
		if err != nil {
			return 0, "\"" + n.Text + "\" is not a duration"
		}
		d = parsed
	} else {
		v, ok := value.Float(n.Scalar)
		if !ok || math.Abs(v) > float64(maxDuration/unit) {
			return 0, n.Text + " is too long"
		}
		d = time.Duration(v * float64(unit))
	}
	switch {
	case d < 0:
		return 0, "a duration cannot be negative"
	case d > maxDuration:
		return 0, n.Text + " is too long"
	}
	return d, ""
}

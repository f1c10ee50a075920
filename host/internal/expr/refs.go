package expr

import (
	"slices"
	"strconv"
)

// Ref is an expression that reads a name that the template does not bind
// itself. Path has the static steps after it, an index as its decimal number:
// state.items[0].name is {Root: "state", Path: ["items","0","name"]}. A bare
// name of an expression is its Root.
type Ref struct {
	Root         string
	Path         []string
	Line, Column int
	// Optional reports whether the filter default follows.
	Optional bool
}

// reader walks a tree and collects its references.
type reader struct {
	text  string
	bound []string
	refs  []Ref
	// position of the last reference: as most are in order, all positions take
	// one pass over the text
	offset, line, column int
}

func references(text string, body []statement) []Ref {
	r := &reader{text: text, line: 1, column: 1}
	r.statements(body)
	return r.refs
}

// scoped calls read with names bound.
func (r *reader) scoped(read func(), names ...string) {
	mark := len(r.bound)
	r.bound = append(r.bound, names...)
	read()
	r.bound = r.bound[:mark]
}

func (r *reader) statements(body []statement) {
	for _, s := range body {
		r.statement(s)
	}
}

func (r *reader) statement(s statement) {
	switch s := s.(type) {
	case *output:
		r.node(s.value)
	case *do:
		r.node(s.value)
	case *group:
		r.statements(s.body)
	case *ifStatement:
		for _, b := range s.branches {
			r.node(b.condition)
			r.statements(b.body)
		}
		r.statements(s.otherwise)
	case *forStatement:
		r.node(s.items)
		r.scoped(func() {
			r.node(s.condition)
			r.statements(s.body)
		}, append([]string{"loop"}, s.targets...)...)
		r.scoped(func() { r.statements(s.otherwise) })
	case *setStatement:
		r.node(s.value)
		r.bound = append(r.bound, s.targets...)
	case *setBlock:
		r.scoped(func() { r.statements(s.body) })
		r.filters(s.filters)
		r.bound = append(r.bound, s.target)
	case *filterBlock:
		r.scoped(func() { r.statements(s.body) })
		r.filters(s.filters)
	case *withStatement:
		for _, v := range s.values {
			r.node(v)
		}
		r.scoped(func() { r.statements(s.body) }, s.names...)
	case *macroStatement:
		r.macro(s)
		r.bound = append(r.bound, s.name)
	case *callBlock:
		r.node(s.call)
		r.macro(s.body)
	}
}

func (r *reader) macro(m *macroStatement) {
	for _, d := range m.defaults {
		r.node(d)
	}
	r.scoped(func() { r.statements(m.body) }, append([]string{"caller", m.name}, m.params...)...)
}

func (r *reader) filters(chain []filtered) {
	for _, f := range chain {
		r.arguments(f.args)
	}
}

func (r *reader) arguments(args arguments) {
	r.nodes(args.positional)
	for _, n := range args.named {
		r.node(n.value)
	}
	r.node(args.list)
	r.node(args.dict)
}

func (r *reader) nodes(list []node) {
	for _, n := range list {
		r.node(n)
	}
}

func (r *reader) node(n node) {
	switch n := n.(type) {
	case *path:
		r.path(n)
	case *attribute:
		r.node(n.object)
	case *subscript:
		r.node(n.object)
		r.node(n.key)
	case *slicing:
		r.nodes([]node{n.object, n.start, n.stop, n.step})
	case *listLiteral:
		r.nodes(n.elements)
	case *dictLiteral:
		r.nodes(n.keys)
		r.nodes(n.values)
	case *unary:
		r.node(n.term)
	case *negation:
		r.node(n.term)
	case *binary:
		r.nodes([]node{n.left, n.right})
	case *logical:
		r.nodes([]node{n.left, n.right})
	case *comparison:
		r.node(n.first)
		for _, c := range n.rest {
			r.node(c.term)
		}
	case *conditional:
		r.nodes([]node{n.then, n.condition, n.otherwise})
	case *filtered:
		before := len(r.refs)
		r.node(n.input)
		if _, direct := n.input.(*path); direct && (n.name == "default" || n.name == "d") && len(r.refs) > before {
			r.refs[before].Optional = true
		}
		r.arguments(n.args)
	case *tested:
		r.node(n.input)
		r.arguments(n.args)
	case *call:
		r.arguments(n.args)
	case *methodCall:
		r.node(n.object)
		r.arguments(n.args)
	}
}

func (r *reader) path(p *path) {
	if slices.Contains(r.bound, p.root) {
		return
	}
	ref := Ref{Root: p.root}
	for _, s := range p.steps {
		if s.isKey {
			ref.Path = append(ref.Path, s.key)
		} else {
			ref.Path = append(ref.Path, strconv.Itoa(s.index))
		}
	}
	ref.Line, ref.Column = r.position(p.pos)
	r.refs = append(r.refs, ref)
}

func (r *reader) position(offset int) (line, column int) {
	if offset < r.offset {
		return lineColumn(r.text, offset)
	}
	line, column = lineColumn(r.text[r.offset:], offset-r.offset)
	if line == 1 {
		column += r.column - 1
	}
	line += r.line - 1
	r.offset, r.line, r.column = offset, line, column
	return line, column
}

package lsp

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// outline is what a document names.
type outline struct {
	host.Outline
	// doc is the text that the outline is of. of is the current one: it differs if
	// that is not YAML, and doc is the last one that was.
	doc, of *document
}

// document returns an open document.
func (s *server) document(uri string) (*document, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.open[uri]; d != nil {
		return d, nil
	}
	return nil, rpcErrorf(codeInvalidParams, "%s is not open", uri)
}

// snapshot returns the open documents.
func (s *server) snapshot() snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	files := snapshot{documents: map[string]*document{}, text: map[string][]byte{}}
	for _, d := range s.open {
		files.documents[d.path] = d
		files.text[d.path] = []byte(d.text)
	}
	return files
}

// outline returns the outline of a document. It is called by the reading goroutine only.
func (s *server) outline(d *document) *outline {
	o := s.outlines[d.uri]
	if o == nil || o.of != d {
		next := &outline{doc: d, of: d}
		if read := s.host.Outline(&host.Source{File: d.path, Files: s.snapshot().text}); read != nil {
			next.Outline = *read
		} else if o != nil {
			next.Outline, next.doc = o.Outline, o.doc
		}
		o, s.outlines[d.uri] = next, next
	}
	return o
}

// actions returns the actions that a workflow can use: those of its modules are known
// once it was valid.
func (s *server) actions(uri string) []host.ActionEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.ofWorkflow[uri]; known != nil {
		return known
	}
	return s.ofHost
}

func (s *server) action(uri, name string) *host.ActionEntry {
	all := s.actions(uri)
	if i := slices.IndexFunc(all, func(a host.ActionEntry) bool { return a.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// nodeNames returns the names of the nodes, each once.
func (o *outline) nodeNames() []string {
	names := map[string]bool{}
	for _, n := range o.Nodes {
		names[n.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// named is a place in the text with the name of a node.
type named struct {
	start, end int
	name       string
	// list is the list of the node, -1 if any.
	list int
	// node is the node that has its name here, nil for a mention.
	node *host.OutlineNode
}

// places returns the places of the document that name a node, and the lines of the names
// that are not found in the text, by name.
func (o *outline) places() (all []named, lost map[string]int) {
	lost = map[string]int{}
	add := func(name string, pos diag.Pos, list int, node *host.OutlineNode, reads bool) {
		start, ok := o.find(name, pos, reads, all)
		if !ok {
			lost[name] = pos.Line
			return
		}
		all = append(all, named{start, start + len(name), name, list, node})
	}
	for i := range o.Nodes {
		n := &o.Nodes[i]
		add(n.Name, n.Pos, n.List, n, false)
	}
	names := o.nodeNames()
	for _, m := range o.Mentions {
		isKey := m.Key && slices.Contains(o.Keys, m.Name) // a key of the state that is named like a node
		if !isKey && slices.Contains(names, m.Name) && absolute(m.Pos.File) == o.doc.path {
			add(m.Name, m.Pos, m.List, nil, m.Reads)
		}
	}
	return all, lost
}

// find returns the offset of a name at a position; for an expression that reads the name,
// at or after it: the first one that is not among those found before.
func (o *outline) find(name string, pos diag.Pos, reads bool, before []named) (int, bool) {
	start := o.doc.at(pos.Line, pos.Column)
	_, end := o.doc.line(o.doc.lineOf(start))
	text := o.doc.text[start:end]
	for _, quote := range []string{"", `"`, "'"} {
		if rest, ok := strings.CutPrefix(text, quote+name); ok {
			if next, _ := utf8.DecodeRuneInString(rest); rest == "" || !isNameRune(next) {
				return start + len(quote), true
			}
		}
	}
	if reads {
		step := regexp.MustCompile(`(?:\.\s*|\[\s*["'])` + regexp.QuoteMeta(name) + `(?:$|[^\w])`)
		for from := 0; ; {
			m := step.FindStringIndex(text[from:])
			if m == nil {
				break
			}
			at := start + from + m[0] + strings.Index(text[from+m[0]:], name)
			if !slices.ContainsFunc(before, func(n named) bool { return n.start == at }) {
				return at, true
			}
			from += m[1] - 1
		}
	}
	return 0, false
}

// isNameRune reports whether a character is part of a name in an expression.
func isNameRune(r rune) bool { return r != '.' && r != '-' && r != '/' && isWordRune(r) }

// at returns the place at an offset, or nil.
func (o *outline) at(offset int) *named {
	if o.doc != o.of {
		return nil // the text has moved
	}
	all, _ := o.places()
	for i := range all {
		if all[i].start <= offset && offset <= all[i].end {
			return &all[i]
		}
	}
	return nil
}

// same returns the places of the node that is named at a place.
func (o *outline) same(p *named) []named {
	all, _ := o.places()
	list := p.list
	if list < 0 {
		for _, n := range all {
			if n.node != nil && n.name == p.name {
				list = n.list
				break
			}
		}
	}
	return slices.DeleteFunc(all, func(n named) bool { return n.name != p.name || n.list >= 0 && n.list != list })
}

package lsp

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// required matches the name in a call of require in Lua.
var required = regexp.MustCompile(`require\s*\(?\s*["']([\w.-]+)["']`)

func (s *server) definition(p *positionParams) (any, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	offset := d.offset(p.Position)
	o := s.outline(d)
	if place := o.at(offset); place != nil {
		for _, n := range o.same(place) {
			if n.node != nil {
				return location{d.uri, d.span(n.start, n.end)}, nil
			}
		}
	}
	c := cursorAt(d, offset)
	start, end := c.word(isWordRune)
	word := d.text[start:end]
	first, last := d.line(d.lineOf(offset))
	for _, m := range required.FindAllStringSubmatchIndex(d.text[first:last], -1) {
		if first+m[0] <= offset && offset <= first+m[1] {
			return s.inModule(o.Modules[d.text[first+m[2]:first+m[3]]], "")
		}
	}
	switch {
	case word == "" || c.block:
	case slices.Contains(callKeys, c.key):
		if namespace, name, ok := strings.Cut(word, "."); ok {
			return s.inModule(o.Modules[namespace], name)
		}
	case c.key == "subgraph", c.key == "path" && slices.Contains(c.path(), "imports"):
		file := word
		if !filepath.IsAbs(file) {
			file = filepath.Join(filepath.Dir(d.path), file)
		}
		return location{URI: s.uri(file)}, nil
	}
	return nil, nil
}

// inModule returns the place of an action in a Lua module, or the beginning of the module.
func (s *server) inModule(path, action string) (any, error) {
	if path == "" {
		return nil, nil
	}
	path = absolute(path)
	file := s.snapshot().document(path)
	at := location{URI: s.uri(path)}
	if action != "" {
		name := regexp.QuoteMeta(action)
		if m := regexp.MustCompile(`\.` + name + `\b|\b` + name + `\s*=|function\s+` + name + `\b`).FindStringIndex(file.text); m != nil {
			at.Range = file.span(m[0], m[1])
		}
	}
	return at, nil
}

// uri returns the URI of a file: the editor's own if it is open there.
func (s *server) uri(path string) string { return s.snapshot().uri(path) }

func (f snapshot) uri(path string) string {
	if d := f.documents[path]; d != nil {
		return d.uri
	}
	return uriOf(path)
}

type referenceParams struct {
	positionParams
	Context struct {
		IncludeDeclaration bool `json:"includeDeclaration"`
	} `json:"context"`
}

func (s *server) references(p *referenceParams) (any, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	o := s.outline(d)
	place := o.at(d.offset(p.Position))
	if place == nil {
		return nil, nil
	}
	found := []location{}
	for _, n := range o.same(place) {
		if n.node == nil || p.Context.IncludeDeclaration {
			found = append(found, location{d.uri, d.span(n.start, n.end)})
		}
	}
	return found, nil
}

func (s *server) prepareRename(p *positionParams) (any, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	if place := s.outline(d).at(d.offset(p.Position)); place != nil {
		return d.span(place.start, place.end), nil
	}
	return nil, nil
}

type renameParams struct {
	positionParams
	NewName string `json:"newName"`
}

// nodeWord are the names that need no quotes anywhere, and can follow nodes. in a template.
var nodeWord = regexp.MustCompile(`^[A-Za-z_]\w*$`)

// rename changes the name of a node everywhere in the file, or nowhere.
func (s *server) rename(p *renameParams) (any, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	o := s.outline(d)
	place := o.at(d.offset(p.Position))
	switch {
	case o.doc != o.of:
		return nil, rpcErrorf(codeRequestFailed, "the text is not valid YAML; correct it before the rename")
	case place == nil:
		return nil, rpcErrorf(codeRequestFailed, "there is no name of a node here")
	case slices.Contains(o.nodeNames(), p.NewName):
		return nil, rpcErrorf(codeRequestFailed, "there is a node %q already", p.NewName)
	case !nodeWord.MatchString(p.NewName):
		return nil, rpcErrorf(codeRequestFailed, "use letters, digits and _ for the name, and no digit first: templates read it as nodes.NAME")
	case p.NewName == "START" || p.NewName == "END":
		return nil, rpcErrorf(codeRequestFailed, "%s has a meaning of its own", p.NewName)
	}
	places, lost := o.places()
	nodes := 0
	for _, n := range places {
		if n.node != nil && n.name == place.name {
			nodes++
		}
	}
	same := o.same(place)
	if nodes != 1 && slices.ContainsFunc(same, func(n named) bool { return n.list < 0 }) {
		return nil, rpcErrorf(codeRequestFailed, "%d nodes are named %q, and a template reads one of them; rename them by hand", nodes, place.name)
	}
	if line := lost[place.name]; line > 0 {
		return nil, rpcErrorf(codeRequestFailed, "line %d names %q in a way that is not found in the text; rename it by hand", line, place.name)
	}
	edits := []textEdit{}
	for _, n := range same {
		edits = append(edits, textEdit{d.span(n.start, n.end), p.NewName})
	}
	return map[string]any{"changes": map[string][]textEdit{d.uri: edits}}, nil
}

// symbol is a node in the outline of the editor.
type symbol struct {
	Name           string    `json:"name"`
	Detail         string    `json:"detail,omitempty"`
	Kind           int       `json:"kind"`
	Range          span      `json:"range"`
	SelectionRange span      `json:"selectionRange"`
	Children       []*symbol `json:"children,omitempty"`
}

func (s *server) symbols(p *documentParams) (any, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	o := s.outline(d)
	if o.doc != o.of {
		return nil, fmt.Errorf("the text is not valid YAML")
	}
	top := []*symbol{}
	var open []*symbol
	for i, n := range o.Nodes {
		if absolute(n.Begin.File) != d.path {
			continue
		}
		begin := d.at(n.Begin.Line, n.Begin.Column)
		name, ok := o.find(n.Name, n.Pos, false, nil)
		if !ok {
			name = begin
		}
		begin = min(begin, name)
		end := len(d.text)
		for _, next := range o.Nodes[i+1:] {
			if next.Depth <= n.Depth {
				end = min(d.at(next.Begin.Line, next.Begin.Column), d.at(next.Pos.Line, next.Pos.Column))
				break
			}
		}
		end = max(begin+len(strings.TrimRight(d.text[begin:max(begin, end)], " \t\r\n-{\"'")), min(name+len(n.Name), len(d.text)))
		item := &symbol{Name: n.Name, Detail: n.Uses, Kind: 12, Range: d.span(begin, end), SelectionRange: d.span(name, min(name+len(n.Name), end))}
		open = open[:min(n.Depth, len(open))]
		if len(open) == 0 {
			top = append(top, item)
		} else {
			parent := open[len(open)-1]
			parent.Children = append(parent.Children, item)
		}
		open = append(open, item)
	}
	return top, nil
}

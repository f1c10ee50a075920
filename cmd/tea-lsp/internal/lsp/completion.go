package lsp

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// codeKeys have Lua, conditions an expression, nodeKeys the name of a node or a list or
// mapping of names.
var (
	codeKeys   = []string{"run", "script", "lua"}
	conditions = []string{"if", "when", "condition"}
	nodeKeys   = []string{"goto", "to", "from", "fan_in", "parallel", "default", "targets", "fallback", "interrupt_before", "interrupt_after"}
	callKeys   = []string{"uses", "action"}
)

// roots are the names at which expressions begin.
var roots = []string{"state", "variables", "settings", "secrets", "env", "nodes", "run", "checkpoint", "result", "parallel_results"}

var (
	openTemplate = regexp.MustCompile(`\{[{%]([^}%]|[}%][^}])*$`)
	beforeName   = regexp.MustCompile(`(?:^|[^\w.])((?:\w+\.)*)\w*$`)
)

func (s *server) complete(p *positionParams) (any, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	items := s.completions(cursorAt(d, d.offset(p.Position)))
	if items == nil {
		items = []completionItem{}
	}
	return items, nil
}

func (s *server) completions(c *cursor) []completionItem {
	o := s.outline(c.doc)
	start, _ := c.doc.line(c.doc.lineOf(c.offset))
	head := c.doc.text[start:c.offset]
	template := openTemplate.MatchString(head)
	code := slices.Contains(codeKeys, c.key)
	switch {
	case template || code || slices.Contains(conditions, c.key):
		return c.names(o, head, code && !template)
	case c.block:
		return nil
	case slices.Contains(callKeys, c.key):
		items := c.items(kindFunction, nil)
		for _, a := range s.actions(c.doc.uri) {
			items = append(items, completionItem{Label: a.Name, Kind: kindFunction, Detail: a.Summary, TextEdit: c.replace(isWordRune, a.Name)})
		}
		return items
	case c.isNode():
		end := "END"
		if c.key == "from" {
			end = "START"
		}
		return c.items(kindNode, append(o.names(c.doc), end))
	case c.key != "":
		return c.items(kindValue, s.shapeAt(c).at(c.key).values())
	}
	shape := s.shapeAt(c)
	if n := len(c.levels); n > 0 && c.levels[n-1].key == "-" {
		if values := shape.values(); len(values) > 0 {
			return c.items(kindValue, values)
		}
	}
	var items []completionItem
	for _, p := range shape.properties() {
		if _, twice := c.siblings[p.name]; twice {
			continue
		}
		edit := c.replace(isWordRune, p.name+": ")
		if end := c.doc.offset(edit.Range.End); strings.HasPrefix(c.doc.text[end:], ":") {
			edit.NewText = p.name
		}
		items = append(items, completionItem{Label: p.name, Kind: kindProperty, Documentation: p.about, TextEdit: edit})
	}
	return items
}

// isNode reports whether the value at the cursor names a node.
func (c *cursor) isNode() bool {
	path := c.path()
	if slices.Contains(path, "with") || slices.Contains(path, "serve") {
		return false
	}
	if n := len(path); c.key == "" && n > 1 && path[n-1] == "-" {
		return slices.Contains(nodeKeys, path[n-2]) && path[n-2] != "goto"
	} else if n > 0 && path[n-1] == "targets" {
		return c.key != ""
	}
	return slices.Contains(nodeKeys, c.key)
}

var nodeName = regexp.MustCompile(`(?m)^[ \t]*(?:- )?[ {]*name:[ \t]*["']?([\w-]+)`)

// names returns the names of the nodes; for a text that never was YAML, what looks like
// one.
func (o *outline) names(d *document) []string {
	if len(o.Nodes) > 0 {
		return o.nodeNames()
	}
	found := map[string]bool{}
	for _, m := range nodeName.FindAllStringSubmatch(d.text, -1) {
		found[m[1]] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// names completes a name in an expression or in Lua.
func (c *cursor) names(o *outline, head string, lua bool) []completionItem {
	m := beforeName.FindStringSubmatch(head)
	if m == nil {
		return nil
	}
	var names []string
	switch m[1] {
	case "":
		if names = slices.Concat(roots, o.Keys); lua {
			names = []string{"state", "variables", "tea", "parallel_results"}
		}
	case "state.":
		names = o.Keys
	case "variables.":
		names = o.Variables
	case "settings.":
		names = o.Settings
	case "secrets.":
		names = o.Secrets
	case "nodes.":
		names = o.names(c.doc)
	case "run.":
		names = []string{"id", "started_at", "data_dir"}
	case "checkpoint.":
		names = []string{"dir", "last"}
	}
	slices.Sort(names)
	var items []completionItem
	for _, name := range slices.Compact(names) {
		items = append(items, completionItem{Label: name, Kind: kindVariable, TextEdit: c.replace(isNameRune, name)})
	}
	return items
}

// items returns an item for each word.
func (c *cursor) items(kind int, words []string) []completionItem {
	var items []completionItem
	for _, w := range words {
		items = append(items, completionItem{Label: w, Kind: kind, TextEdit: c.replace(isWordRune, w)})
	}
	return items
}

// replace returns the edit that replaces the word around the cursor.
func (c *cursor) replace(is func(rune) bool, text string) textEdit {
	start, end := c.word(is)
	return textEdit{c.doc.span(start, end), text}
}

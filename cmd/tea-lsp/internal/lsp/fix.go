package lsp

import (
	"regexp"
	"strings"
)

var (
	suggested = regexp.MustCompile(`did you mean ("(?:[^"\\]|\\.)*")\?`)
	// instead matches a hint that names the word to write, and the operator it replaces.
	instead  = regexp.MustCompile(`^(?:the language is Lua 5\.1, without (\S+): )?write ([^\s,;]+)$`)
	inQuotes = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
	dotted   = regexp.MustCompile(`\b\w+(?:\.[\w-]+)+`)
)

type actionParams struct {
	TextDocument textDocument `json:"textDocument"`
	Context      struct {
		Diagnostics []diagnostic `json:"diagnostics"`
	} `json:"context"`
}

// fixes returns the changes that the hints of findings name.
func (s *server) fixes(p *actionParams) (any, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	found := []map[string]any{}
	for _, finding := range p.Context.Diagnostics {
		if edit, title := d.fix(finding); edit != nil {
			found = append(found, map[string]any{
				"title": title, "kind": "quickfix", "isPreferred": true, "diagnostics": []diagnostic{finding},
				"edit": map[string]any{"changes": map[string][]textEdit{d.uri: {*edit}}},
			})
		}
	}
	return found, nil
}

// fix returns the edit that replaces the wrong word of a finding: the last word of its
// message that occurs in the text at or after its position.
func (d *document) fix(finding diagnostic) (*textEdit, string) {
	message, hint, _ := strings.Cut(finding.Message, "\nhint: ")
	start := d.offset(finding.Range.Start)
	if finding.Source != "tea" {
		return nil, ""
	}
	if finding.Code == "TEA1308" && strings.HasPrefix(d.text[start:], "${{") {
		return &textEdit{d.span(start, start+1), ""}, "Remove $"
	}
	var better string
	var words []string
	if m := suggested.FindStringSubmatch(hint); m != nil {
		better = strings.Trim(m[1], `"`)
	} else if m := instead.FindStringSubmatch(hint); m != nil {
		if better = m[2]; m[1] != "" {
			message, words = "", []string{m[1]}
		}
	} else {
		return nil, ""
	}
	for _, q := range inQuotes.FindAllStringSubmatch(message, -1) {
		words = append([]string{q[1]}, words...)
	}
	if name := dotted.FindString(message); name != "" {
		words = append(words, name[strings.LastIndex(name, ".")+1:])
	}
	_, end := d.line(d.lineOf(start))
	for _, word := range words {
		if i := strings.Index(d.text[start:end], word); word != "" && i >= 0 {
			return &textEdit{d.span(start+i, start+i+len(word)), better}, "Replace " + word + " with " + better
		}
	}
	return nil, ""
}

package lsp

import (
	"regexp"
	"strings"
)

var (
	suggested = regexp.MustCompile(`did you mean ("(?:[^"\\]|\\.)*")\?`)
	inQuotes  = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
	dotted    = regexp.MustCompile(`\b\w+(?:\.[\w-]+)+`)
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

// fix returns the edit that replaces the misspelt word of a finding, which is the last
// one in the message that the text has at or after the finding's position.
func (d *document) fix(finding diagnostic) (*textEdit, string) {
	message, hint, _ := strings.Cut(finding.Message, "\nhint: ")
	m := suggested.FindStringSubmatch(hint)
	if finding.Source != "tea" || m == nil {
		return nil, ""
	}
	better := strings.Trim(m[1], `"`)
	var words []string
	for _, q := range inQuotes.FindAllStringSubmatch(message, -1) {
		words = append([]string{q[1]}, words...)
	}
	if name := dotted.FindString(message); name != "" {
		words = append(words, name[strings.LastIndex(name, ".")+1:])
	}
	start := d.offset(finding.Range.Start)
	_, end := d.line(d.lineOf(start))
	for _, word := range words {
		if i := strings.Index(d.text[start:end], word); word != "" && i >= 0 {
			return &textEdit{d.span(start+i, start+i+len(word)), better}, "Replace " + word + " with " + better
		}
	}
	return nil, ""
}

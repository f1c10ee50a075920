package lsp

import (
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/reference"
	tea "github.com/the-edge-agent/tea/sdk"
)

func (s *server) hover(p *positionParams) (any, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	c := cursorAt(d, d.offset(p.Position))
	start, end := c.word(isWordRune)
	word := d.text[start:end]
	if word == "" || c.block {
		return nil, nil
	}
	text, ok := "", false
	_, lineEnd := d.line(d.lineOf(start))
	if isKey := strings.HasPrefix(strings.TrimLeft(d.text[end:lineEnd], `"' `), ":"); isKey {
		// The cursor can be in the value of the key before it in the line.
		text, ok = s.shapeAt(cursorAt(d, start)).about(word)
	} else if slices.Contains(callKeys, c.key) {
		if a := s.action(d.uri, word); a != nil {
			text, ok = actionPage(*a), true
		}
	}
	if !ok || text == "" {
		return nil, nil
	}
	return map[string]any{"contents": map[string]string{"kind": "markdown", "value": text}, "range": d.span(start, end)}, nil
}

// actionPage returns the reference of an action in Markdown.
func actionPage(a host.ActionEntry) string {
	page := reference.Markdown(tea.Manifest{Name: a.Bundle, Version: a.Version, Actions: []tea.ActionInfo{a.ActionInfo}})
	if i := strings.Index(page, "\n### "); i >= 0 {
		page = page[i+1:]
	}
	return page
}

package graph

import (
	"fmt"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/host/internal/spec"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// calls checks the calls that an action makes later with parameters from the workflow.
// v is the value at a place in with, and s is its schema. See [tea.ParamsOf].
func (p *paramChecker) calls(s *schema.Schema, with *spec.Tree, v any, place string, diags *diag.List) {
	object, ok := v.(map[string]any)
	if !ok || s == nil || s.Properties == nil {
		return
	}
	for _, property := range *s.Properties {
		key := diag.Key(place, property.Name)
		nameKey, ok := property.Schema.Extra[tea.ParamsOf].(string)
		if !ok {
			p.calls(property.Schema, with, object[property.Name], key, diags)
			continue
		}
		if name, ok := object[nameKey].(string); ok && name != "" && !expr.IsTemplate(name) {
			p.checkCall(with.Call(diag.Key(place, nameKey), key), laterHint(property.Schema, key), diags)
		}
	}
}

// laterHint returns where to write the parameters of a later call.
func laterHint(s *schema.Schema, key string) string {
	hint := "write the parameters under " + key
	if names, ok := s.Extra[tea.Templates].([]any); ok {
		texts := make([]string, len(names))
		for i, name := range names {
			texts[i] = fmt.Sprint(name)
		}
		hint += ", where templates can also read " + strings.Join(texts, ", ")
	}
	if examples, ok := s.Extra["examples"].([]any); ok && len(examples) > 0 {
		hint += fmt.Sprintf(", such as %q", fmt.Sprint(examples[0]))
	}
	return hint
}

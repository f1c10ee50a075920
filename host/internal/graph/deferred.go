package graph

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/host/internal/spec"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// with compiles the parameters of an action, and separately, by their text, the
// templates in them that the action evaluates later.
func (c *compiler) with(b *spec.ActionBody, roots []string) (*expr.Value, map[string]*expr.Template) {
	if b.With == nil || c.params.actions == nil {
		return c.tree(b.With, roots), nil
	}
	info, ok := c.params.actions.Describe(b.Uses.Value)
	if !ok {
		return c.compileUnchecked(b.With, roots), nil
	}
	names := map[string][]string{}
	deferredParams(info.Params, b.With.Value, "", names)
	if len(names) == 0 {
		return c.tree(b.With, roots), nil
	}
	own := map[string]*expr.Template{}
	for place := range maps.Keys(names) {
		later := c.templates(b.With, withRoots(roots, names[place]...), func(path, text string) bool {
			return isInside(path, place) && expr.IsTemplate(text)
		})
		for _, located := range later.Templates() {
			own[located.Template.Text()] = located.Template
		}
	}
	return c.templates(b.With, roots, func(path, text string) bool {
		for place := range names {
			if isInside(path, place) {
				return false
			}
		}
		return expr.IsTemplate(text)
	}), own
}

// compileUnchecked compiles the parameters of an unknown action. As the action may add
// names to templates, no name is reported as unknown.
func (c *compiler) compileUnchecked(with *spec.Tree, roots []string) *expr.Value {
	before := len(c.reads)
	v := c.tree(with, roots)
	kept := slices.DeleteFunc(c.reads[before:], func(r read) bool { return r.isRoot })
	c.reads = c.reads[:before+len(kept)]
	return v
}

// isInside reports whether the path of a value in a tree is place or below it.
func isInside(path, place string) bool {
	rest, ok := strings.CutPrefix(path, place)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// deferredParams finds the places in v, a value with the schema s, whose
// templates the action evaluates later, with the names that it adds.
func deferredParams(s *schema.Schema, v any, place string, names map[string][]string) {
	if s == nil {
		return
	}
	if list, ok := s.Extra[tea.Templates].([]any); ok {
		for _, name := range list {
			names[place] = append(names[place], fmt.Sprint(name))
		}
		return
	}
	object, ok := v.(map[string]any)
	if !ok || s.Properties == nil {
		return
	}
	for _, p := range *s.Properties {
		if member, ok := object[p.Name]; ok {
			deferredParams(p.Schema, member, diag.Key(place, p.Name), names)
		}
	}
}

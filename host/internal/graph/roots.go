package graph

import (
	"slices"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/sdk/diag"
)

// checkRoots warns about names that no template knows. They are looked up in
// the state at run time, so a bare state key works; a typo is null.
func (c *compiler) checkRoots(text spec.Text, t *expr.Template, roots []string) {
	for _, ref := range t.Roots() {
		if slices.Contains(templateRoots, ref.Root) || slices.Contains(roots, ref.Root) || c.declares(ref.Root) {
			continue
		}
		hint := diag.Suggest(ref.Root, withRoots(templateRoots, roots...))
		if hint == "" {
			hint = "write state." + ref.Root + " for a key of the state"
		}
		c.diags.Warnf(diagcode.UnknownRoot, text.At(ref.Line, ref.Column), hint, "templates know no name %q; it is looked up in the state", ref.Root)
	}
}

func (c *compiler) checkValueRoots(tree *spec.Tree, v *expr.Value, roots []string) {
	for _, located := range v.Templates() {
		text, ok := tree.Places[located.Path]
		if !ok {
			text = spec.Text{Pos: tree.Pos}
		}
		c.checkRoots(text, located.Template, roots)
	}
}

// declares tells whether a name is a key of the state that the file mentions.
func (c *compiler) declares(name string) bool {
	if _, ok := c.wf.InitialState[name]; ok {
		return true
	}
	return slices.ContainsFunc(c.wf.Schema, func(k spec.Key) bool { return k.Name == name })
}

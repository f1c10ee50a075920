package graph

import (
	"strings"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/host/internal/spec"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/diag"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
)

// paramChecker checks the parameters of action nodes against the actions' schemas.
type paramChecker struct{ actions Actions }

func newParamChecker(actions Actions) *paramChecker { return &paramChecker{actions: actions} }

func (p *paramChecker) check(b *spec.ActionBody, diags *diag.List) {
	if p.actions == nil {
		return
	}
	info, ok := p.actions.Describe(b.Uses.Value)
	if !ok {
		hint := diag.Suggest(b.Uses.Value, p.actions.Names())
		if hint == "" {
			hint = "`tea actions` lists the actions there are; a plugin's are there when its binary is in a plugin directory"
		}
		diags.Errorf(diagcode.UnknownAction, b.Uses.Pos, hint, "there is no action %q", b.Uses.Value)
		return
	}
	if info.Params == nil {
		return
	}
	with := &spec.Tree{Pos: b.Pos}
	if b.With != nil {
		with = b.With
	}
	given, ok := with.Value.(map[string]any)
	if !ok && with.Value != nil {
		if text, isText := with.Value.(string); isText && expr.IsTemplate(text) {
			return // the whole object comes from a template
		}
		diags.Errorf(diagcode.WrongParameterType, with.Pos, "", "the parameters of %s must be an object, got %s", info.Name, value.TypeName(with.Value))
		return
	}
	checkObject(info, info.Params, given, "", with, diags)
}

// checkObject reports missing, unknown and mistyped members. Values that come
// from templates are trusted here and checked when they are known.
func checkObject(info tea.ActionInfo, s *schema.Schema, given map[string]any, path string, with *spec.Tree, diags *diag.List) {
	for _, name := range s.Required {
		if _, ok := given[name]; !ok {
			diags.Errorf(diagcode.MissingParameter, with.Pos, "see `tea actions "+info.Name+"`", "%s needs the parameter %q", info.Name, join(path, name))
		}
	}
	for name, v := range given {
		at := join(path, name)
		prop := s.Properties.Get(name)
		if prop == nil {
			prop = s.AdditionalProperties
			if prop == nil {
				continue
			}
		}
		if prop.Never {
			diags.Errorf(diagcode.UnknownParameter, place(with, at), diag.Suggest(name, s.Properties.Names()), "%s has no parameter %q", info.Name, at)
			continue
		}
		checkValue(info, prop, v, at, with, diags)
	}
}

func checkValue(info tea.ActionInfo, s *schema.Schema, v any, path string, with *spec.Tree, diags *diag.List) {
	if text, ok := v.(string); ok && expr.IsTemplate(text) {
		return
	}
	if len(s.Type) > 0 && !hasType(s.Type, v) {
		diags.Errorf(diagcode.WrongParameterType, place(with, path), "", "%s: the parameter %q must be %s, got %s",
			info.Name, path, strings.Join(s.Type, " or "), value.TypeName(v))
		return
	}
	if len(s.Enum) > 0 && !inEnum(s.Enum, v) {
		allowed := make([]string, len(s.Enum))
		for i, e := range s.Enum {
			text, _ := value.From(e)
			raw, _ := value.Encode(text)
			allowed[i] = string(raw)
		}
		diags.Errorf(diagcode.WrongParameterType, place(with, path), "use one of "+strings.Join(allowed, ", "), "%s: the parameter %q has a value that is not allowed", info.Name, path)
		return
	}
	if object, ok := v.(map[string]any); ok && s.Properties != nil {
		checkObject(info, s, object, path, with, diags)
	}
}

func hasType(types schema.Types, v any) bool {
	name := value.TypeName(v)
	for _, t := range types {
		if t == name || t == "number" && name == "integer" {
			return true
		}
		if f, ok := v.(float64); ok && t == "integer" && f == float64(int64(f)) {
			return true
		}
	}
	return false
}

func inEnum(enum []any, v any) bool {
	for _, e := range enum {
		if m, err := value.From(e); err == nil && value.Equal(m, v) {
			return true
		}
	}
	return false
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func place(t *spec.Tree, path string) diag.Pos {
	if text, ok := t.Places[path]; ok {
		return text.Pos
	}
	return t.Pos
}

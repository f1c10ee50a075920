package catalog

import (
	"maps"
	"slices"

	"github.com/the-edge-agent/tea/host/internal/script"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/diag"
	"github.com/the-edge-agent/tea/sdk/jsonschema"
)

// moduleParams is what a Lua module says about the parameters of one action.
// Nothing in the function itself would refuse wrong ones.
type moduleParams struct {
	schema   *jsonschema.Schema
	names    []string // nil where the schema lists none
	defaults map[string]any
}

// paramsOf reads the schemas of a module's actions. What is no schema is
// passed over, as it is for validation.
func paramsOf(m *script.Module) map[string]*moduleParams {
	out := map[string]*moduleParams{}
	for _, a := range m.Actions() {
		if a.Params == nil {
			continue
		}
		schema, err := jsonschema.Compile(a.Params)
		if err != nil {
			continue
		}
		p := &moduleParams{schema: schema, defaults: map[string]any{}}
		properties, _ := a.Params["properties"].(map[string]any)
		for name, about := range properties {
			p.names = append(p.names, name)
			object, _ := about.(map[string]any)
			if v, ok := object["default"]; ok {
				p.defaults[name] = v
			}
		}
		slices.Sort(p.names)
		out[a.Name] = p
	}
	return out
}

// accept checks the parameters of a call and adds defaults for those that are
// absent; p may be nil. v is shared and stays as it is.
func (p *moduleParams) accept(action string, v any) (map[string]any, error) {
	given, ok := v.(map[string]any)
	if !ok && v != nil {
		return nil, tea.Errorf(tea.ValidationError, "the parameters of %s must be an object", action)
	}
	if p == nil {
		return given, nil
	}
	if given == nil {
		given = map[string]any{}
	}
	if problems := p.schema.Validate(given); len(problems) > 0 {
		return nil, p.refusal(action, problems)
	}
	params := maps.Clone(p.defaults)
	maps.Copy(params, given)
	return params, nil
}

// refusal words the first problem; all are in its details.
func (p *moduleParams) refusal(action string, problems []jsonschema.Problem) error {
	var e *tea.Error
	switch first := problems[0]; {
	case first.Kind == jsonschema.MissingMember:
		e = tea.Errorf(tea.ValidationError, "%s needs the parameter %q", action, memberPath(first))
	case first.Kind == jsonschema.UnknownMember:
		e = tea.Errorf(tea.ValidationError, "%s has no parameter %q", action, first.Path)
		if hint := diag.Suggest(first.Member, p.names); hint != "" && first.Path == first.Member {
			e.Message += "; " + hint
		}
	case first.Path == "":
		e = tea.Errorf(tea.ValidationError, "the parameters of %s: %s", action, first.Message)
	default:
		e = tea.Errorf(tea.ValidationError, "%s: parameter %q: %s", action, first.Path, first.Message)
	}
	list := make([]any, len(problems))
	for i, problem := range problems {
		list[i] = map[string]any{"path": problem.Path, "message": problem.Message}
	}
	e.Details = map[string]any{"errors": list}
	return e
}

func memberPath(p jsonschema.Problem) string {
	if p.Path == "" {
		return p.Member
	}
	return p.Path + "." + p.Member
}

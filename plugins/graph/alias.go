package graph

import (
	"context"
	"maps"
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
)

// alias is an alternative name of a parameter in existing workflows.
type alias struct {
	name, also string
	// beside is a parameter without which the alias has another meaning; "" = none.
	beside string
}

var (
	entityAliases   = []alias{{name: "entity_type", also: "type"}}
	relationAliases = []alias{
		{name: "from_entity", also: "source", beside: "target"},
		{name: "to_entity", also: "target"},
		{name: "relation_type", also: "type"},
	}
	startAliases = []alias{{name: "entity_id", also: "start_entity"}}
	pathAliases  = []alias{{name: "from_entity", also: "start_entity"}, {name: "from_entity", also: "source"}, {name: "to_entity", also: "target"}}
)

// withAliases returns the action with aliases for its parameters, or for those of the
// items in the parameter list.
func withAliases(a tea.Action, list string, aliases []alias) tea.Action {
	params := a.Params
	if list == "" {
		params = aliasedSchema(params, aliases)
	} else {
		items := *params.Properties.Get(list)
		items.Items = aliasedSchema(items.Items, aliases)
		params = replaced(params, list, &items)
	}
	inner := a.Handle
	return tea.Action{
		Name: a.Name, Summary: a.Summary, Params: params, Result: a.Result, Streaming: a.Streaming, Idempotent: a.Idempotent,
		Handle: func(ctx context.Context, req *tea.Request) (*tea.Response, error) {
			given, err := req.Params.Value()
			if err != nil {
				return nil, err
			}
			renamed, err := rename(given, list, aliases)
			if err != nil {
				return nil, err
			}
			call := *req
			call.Params = tea.ValuePayload(renamed)
			return inner(ctx, &call)
		},
	}
}

// replaced returns a copy of an object's schema in which one member has another schema.
func replaced(s *schema.Schema, name string, member *schema.Schema) *schema.Schema {
	changed, properties := *s, slices.Clone(*s.Properties)
	changed.Properties = &properties
	for i := range properties {
		if properties[i].Name == name {
			properties[i].Schema = member
			return &changed
		}
	}
	properties = append(properties, schema.Property{Name: name, Schema: member})
	return &changed
}

// aliasedSchema returns a copy of an object's schema with the aliases. A required
// parameter is required under any one of its names.
func aliasedSchema(s *schema.Schema, aliases []alias) *schema.Schema {
	var oneOf []any
	for _, name := range s.Required {
		forms := []any{map[string]any{"required": []any{name}}}
		for _, a := range aliases {
			if a.name == name {
				forms = append(forms, map[string]any{"required": []any{a.also}})
			}
		}
		if len(forms) > 1 {
			oneOf = append(oneOf, map[string]any{"anyOf": forms})
		}
	}
	required := slices.DeleteFunc(slices.Clone(s.Required), func(name string) bool {
		return slices.ContainsFunc(aliases, func(a alias) bool { return a.name == name })
	})
	for _, a := range aliases {
		member := *s.Properties.Get(a.name)
		member.Description = "same as " + a.name
		if former := s.Properties.Get(a.also); former != nil {
			member.Description = former.Description + "; beside " + a.beside + " it is the same as " + a.name
		}
		s = replaced(s, a.also, &member)
	}
	changed := *s
	changed.Required = required
	if oneOf != nil {
		changed.Extra = maps.Clone(s.Extra)
		if changed.Extra == nil {
			changed.Extra = map[string]any{}
		}
		changed.Extra["allOf"] = oneOf
	}
	return &changed
}

// rename returns the parameters with each alias replaced by the parameter's name.
func rename(given any, list string, aliases []alias) (any, error) {
	object, ok := given.(map[string]any)
	if !ok {
		return given, nil
	}
	if list == "" {
		return renameObject(object, aliases)
	}
	items, ok := object[list].([]any)
	if !ok {
		return given, nil
	}
	all := make([]any, len(items))
	for i, item := range items {
		var err error
		if all[i], err = rename(item, "", aliases); err != nil {
			return nil, tea.Errorf(tea.ValidationError, "%s[%d]: %w", list, i, err)
		}
	}
	object = maps.Clone(object)
	object[list] = all
	return object, nil
}

func renameObject(given map[string]any, aliases []alias) (map[string]any, error) {
	object := maps.Clone(given)
	for _, a := range aliases {
		v := given[a.also]
		if v == nil || a.beside != "" && (given[a.beside] == nil || given[a.name] != nil) {
			continue
		}
		if former := given[a.name]; former != nil && !value.Equal(former, v) {
			return nil, tea.Errorf(tea.ValidationError, "%s and %s mean the same parameter and differ; remove %[2]s", a.name, a.also)
		}
		delete(object, a.also)
		object[a.name] = v
	}
	return object, nil
}

package spec

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// part is an object of a JSON Schema.
type part = map[string]any

// JSONSchema returns the compact JSON Schema (draft-07) of the file format, for
// editors. It covers the parameters of the given actions. In the namespace of such
// an action no other name is valid; other namespaces may belong to Lua modules,
// which the schema does not cover.
func JSONSchema(actions []tea.ActionInfo) ([]byte, error) {
	g := theGrammar()
	definitions := part{}
	for _, s := range g.sections() {
		definitions[definitionName(s)] = sectionSchema(s)
	}
	definitions[actionName] = actionSchema(actions)
	definitions[actionCall] = part{"allOf": callConditions(g.call, actions)}
	definitions[nodeKeys] = knownNames(append(g.node.spellings(), g.call.spellings()...))
	for _, s := range []*section{g.node, g.step} {
		definitions[s.title] = choice(s)
	}
	names := map[string]string{} // the definitions' names by their text
	for _, a := range actions {
		params, err := paramsSchema(a)
		if err != nil {
			return nil, err
		}
		name := "params:" + a.Name
		if other, known := names[string(params)]; known {
			definitions[name] = referenceTo(other)
			continue
		}
		names[string(params)], definitions[name] = name, params
	}
	document := part{
		"$schema":     "http://json-schema.org/draft-07/schema#",
		"title":       "tea workflow",
		"allOf":       []any{reference(g.workflow)},
		"definitions": definitions,
	}
	return json.Marshal(document)
}

// definitionName returns the name of a section's definition. For a section with
// variants, the plain title names the choice between them.
func definitionName(s *section) string {
	name := strings.ReplaceAll(s.title, " ", "-")
	if s.variants != nil {
		return "plain-" + name
	}
	return name
}

func reference(s *section) part { return referenceTo(strings.ReplaceAll(s.title, " ", "-")) }

func referenceTo(name string) part { return part{"$ref": "#/definitions/" + name} }

// choice selects the variant of a section by type.
func choice(s *section) part {
	chosen := referenceTo(definitionName(s))
	for _, kind := range slices.Sorted(maps.Keys(s.variants)) {
		chosen = part{
			"if":   part{"properties": part{"type": part{"const": kind}}, "required": []string{"type"}},
			"then": reference(s.variants[kind]),
			"else": chosen,
		}
	}
	return chosen
}

// The definitions that every section with a call shares.
const (
	actionName = "name-of-an-action"
	actionCall = "call-of-an-action"
	nodeKeys   = "keys-of-a-node"
)

// actionSchema returns the schema of a value of uses.
func actionSchema(actions []tea.ActionInfo) part {
	names := make([]string, len(actions))
	var namespaces []string
	for i, a := range actions {
		names[i] = a.Name
		if namespace, _, ok := strings.Cut(a.Name, "."); ok && !slices.Contains(namespaces, namespace) {
			namespaces = append(namespaces, regexp.QuoteMeta(namespace))
		}
	}
	if len(names) == 0 {
		return part{"type": "string"}
	}
	return part{"type": "string", "anyOf": []any{
		part{"enum": names},
		part{"not": part{"pattern": `^(` + strings.Join(namespaces, "|") + `)\.`}},
	}}
}

// oneBody rejects two bodies in one node, and one body under two spellings.
func oneBody(s *section) part {
	var bodies []string
	for _, name := range []string{"uses", "run", "steps", "subgraph"} {
		if k := s.find(name); k != nil {
			bodies = append(bodies, k.spellings()...)
		}
	}
	var pairs []any
	for i, a := range bodies {
		for _, b := range bodies[i+1:] {
			pairs = append(pairs, part{"required": []string{a, b}})
		}
	}
	return part{"not": part{"anyOf": pairs}}
}

func sectionSchema(s *section) part {
	properties, ofNode := part{}, part{}
	names := []string{}
	var conditions []any
	for _, k := range s.keys {
		for _, spelling := range k.spellings() {
			properties[spelling] = keySchema(k, spelling)
			names = append(names, spelling)
		}
		if s.inlineParams && k.use != asKey {
			ofNode[k.name] = shapeSchema(k.shape)
			properties[k.name] = part{"description": k.doc}
		}
		if k.required && k.name != "name" {
			conditions = append(conditions, requireOne(k))
		}
	}
	p := part{"type": "object", "description": s.doc, "properties": properties}
	if s.inlineParams {
		known := knownNames(names)
		with := []any{part{"required": []string{"with"}}, part{"required": []string{"config"}}, part{"required": []string{"params"}, "propertyNames": known}}
		conditions = append(conditions, part{
			"if":   part{"required": []string{"action"}, "not": part{"anyOf": with}},
			"else": part{"properties": ofNode, "propertyNames": known},
		})
	} else {
		p["patternProperties"] = part{"^x-": part{}}
		p["additionalProperties"] = false
	}
	if s.find("with") != nil {
		conditions = append(conditions, oneBody(s), referenceTo(actionCall))
		for _, spelling := range s.find("uses").spellings() {
			properties[spelling] = part{"description": properties[spelling].(part)["description"], "allOf": []any{referenceTo(actionName)}}
		}
	}
	if conditions != nil {
		p["allOf"] = conditions
	}
	return p
}

// knownNames accepts the names of keys, and custom names.
func knownNames(names []string) part {
	return part{"anyOf": []any{part{"enum": names}, part{"pattern": "^x-"}}}
}

func requireOne(k *key) part { return anyRequired(k.spellings()) }

func anyRequired(names []string) part {
	if len(names) == 1 {
		return part{"required": names}
	}
	var list []any
	for _, name := range names {
		list = append(list, part{"required": []string{name}})
	}
	return part{"anyOf": list}
}

func keySchema(k *key, spelling string) part {
	p := shapeSchema(k.shape)
	if _, isReference := p["$ref"]; isReference {
		// draft-07 ignores the siblings of $ref.
		p = part{"allOf": []any{p}}
	}
	p["description"] = k.doc
	if spelling != k.name {
		p["description"] = fmt.Sprintf("The same as %s. %s", k.name, k.doc)
	}
	if k.fallback != "" {
		p["description"] = fmt.Sprintf("%s Default: %s.", p["description"], k.fallback)
	}
	return p
}

// shapeSchema returns the schema of a shape, which accepts any of its forms.
func shapeSchema(s *shape) part {
	var forms []part
	if s.text != nil {
		forms = append(forms, textSchema(s.text))
	}
	if s.boolean {
		forms = append(forms, part{"type": "boolean"})
	}
	if s.number != nil {
		forms = append(forms, numberSchema(s.number, s.positive))
	}
	if s.duration > 0 {
		forms = append(forms, numberSchema(&numberForm{}, s.positive), part{"type": "string", "pattern": `^\+?([0-9.]+(ns|us|µs|ms|s|m|h))+$|^0$`})
	}
	if s.list != nil {
		forms = append(forms, part{"type": "array", "items": elementSchema(s.list), "minItems": s.minItems})
	}
	if s.mapping != nil {
		forms = append(forms, reference(s.mapping))
	}
	if s.entries != nil {
		entry := shapeSchema(s.entries)
		if s.entries.mapping != nil && s.entries.mapping.named {
			entry = part{"anyOf": []any{part{"type": "null"}, entry}}
		}
		forms = append(forms, part{"type": "object", "additionalProperties": entry, "minProperties": s.minItems})
	}
	switch len(forms) {
	case 0:
		return part{}
	case 1:
		return forms[0]
	}
	return part{"anyOf": forms}
}

// elementSchema returns the schema of a list's element. A named element of a list
// needs its name, because it has no key.
func elementSchema(s *shape) part {
	p := shapeSchema(s)
	if s.mapping == nil || !s.mapping.named {
		return p
	}
	all := []any{p}
	for _, k := range s.mapping.keys {
		if k.required {
			all = append(all, requireOne(k))
		}
	}
	return part{"allOf": all}
}

func textSchema(t *textForm) part {
	switch {
	case t.enum != nil:
		return part{"type": "string", "enum": t.enum}
	case t.scalar:
		return part{"type": []string{"string", "number", "boolean"}}
	}
	return part{"type": "string"}
}

func numberSchema(n *numberForm, positive bool) part {
	p := part{"type": "number", "minimum": n.min}
	if positive {
		p = part{"type": "number", "exclusiveMinimum": n.min}
	}
	if n.integer {
		p["type"] = "integer"
	}
	if n.max != nil {
		p["maximum"] = *n.max
	}
	return p
}

// callConditions apply the schema of the action in uses to with.
func callConditions(s *section, actions []tea.ActionInfo) []any {
	var list []any
	for _, a := range actions {
		var named []any
		for _, spelling := range s.find("uses").spellings() {
			named = append(named, part{"properties": part{spelling: part{"const": a.Name}}, "required": []string{spelling}})
		}
		with := part{}
		for _, spelling := range s.find("with").spellings() {
			with[spelling] = referenceTo("params:" + a.Name)
		}
		params := with["params"]
		delete(with, "params")
		list = append(list, part{"if": part{"anyOf": named}, "then": part{
			"properties": with,
			"if":         part{"propertyNames": referenceTo(nodeKeys)}, // otherwise params is itself a parameter, see findIn
			"then":       part{"properties": part{"params": params}},
		}})
	}
	return list
}

// paramsSchema returns an action's schema, which also accepts a template for
// any value.
func paramsSchema(a tea.ActionInfo) (json.RawMessage, error) {
	if a.Params == nil {
		return json.RawMessage(`{"type":"object"}`), nil
	}
	data, err := json.Marshal(withTemplates(a.Params))
	if err != nil {
		return nil, fmt.Errorf("encode the schema of %s: %w", a.Name, err)
	}
	return data, nil
}

// withTemplates returns a copy of a schema that accepts a template for every
// value inside.
func withTemplates(s *schema.Schema) *schema.Schema {
	c := *s
	if s.Properties != nil {
		properties := schema.Properties{}
		for _, p := range *s.Properties {
			properties = append(properties, schema.Property{Name: p.Name, Schema: orTemplate(p.Schema)})
		}
		c.Properties = &properties
	}
	if s.Items != nil {
		c.Items = orTemplate(s.Items)
	}
	if s.AdditionalProperties != nil && !s.AdditionalProperties.Never {
		c.AdditionalProperties = orTemplate(s.AdditionalProperties)
	}
	return &c
}

func orTemplate(s *schema.Schema) *schema.Schema {
	inner := withTemplates(s)
	template := &schema.Schema{Type: schema.Types{"string"}, Pattern: `\{\{|\{%`}
	return &schema.Schema{Description: s.Description, Default: s.Default, AnyOf: []*schema.Schema{inner, template}}
}

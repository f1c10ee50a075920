package lsp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// shape is a JSON Schema, or several of which any may apply.
type shape struct {
	root map[string]any
	all  []map[string]any
}

// newShape returns the shape of a schema's JSON text.
func newShape(text []byte) shape {
	root := map[string]any{}
	if json.Unmarshal(text, &root) != nil {
		return shape{}
	}
	return shape{root: root}.with(root)
}

// with returns the schemas that one schema consists of. Conditions count as met.
func (s shape) with(schemas ...any) shape {
	out := shape{root: s.root}
	seen := map[string]bool{}
	var add func(v any)
	add = func(v any) {
		schema, ok := v.(map[string]any)
		if !ok {
			return
		}
		if name, ok := schema["$ref"].(string); ok {
			if definitions, ok := s.root["definitions"].(map[string]any); ok && !seen[name] {
				seen[name] = true
				add(definitions[strings.TrimPrefix(name, "#/definitions/")])
			}
			return
		}
		out.all = append(out.all, schema)
		for _, key := range []string{"allOf", "anyOf", "oneOf"} {
			list, _ := schema[key].([]any)
			for _, part := range list {
				add(part)
			}
		}
		add(schema["then"])
		add(schema["else"])
	}
	for _, v := range schemas {
		add(v)
	}
	return out
}

// at returns the shape of the value at a path, in which "-" is an item of a list.
func (s shape) at(path ...string) shape {
	for _, key := range path {
		var next []any
		for _, schema := range s.all {
			if key == "-" {
				next = append(next, schema["items"])
				continue
			}
			properties, _ := schema["properties"].(map[string]any)
			if inside, ok := properties[key]; ok {
				next = append(next, inside)
			} else {
				next = append(next, schema["additionalProperties"])
			}
		}
		s = s.with(next...)
	}
	return s
}

// property is a key with its description.
type property struct{ name, about string }

// properties returns the keys of an object.
func (s shape) properties() []property {
	about := map[string]string{}
	for _, schema := range s.all {
		properties, _ := schema["properties"].(map[string]any)
		for name, inside := range properties {
			part, _ := inside.(map[string]any)
			text, _ := part["description"].(string)
			if about[name] == "" {
				about[name] = text
			}
		}
	}
	var list []property
	for _, name := range slices.Sorted(maps.Keys(about)) {
		list = append(list, property{name, about[name]})
	}
	return list
}

// about returns the description of a key; ok reports whether there is such a key.
func (s shape) about(key string) (text string, ok bool) {
	for _, p := range s.properties() {
		if p.name == key {
			return p.about, true
		}
	}
	return "", false
}

// values returns the values that are listed.
func (s shape) values() []string {
	var values []string
	for _, schema := range s.all {
		list, _ := schema["enum"].([]any)
		if v, ok := schema["const"]; ok {
			list = append(list, v)
		}
		if schema["type"] == "boolean" {
			list = append(list, true, false)
		}
		for _, v := range list {
			if text := fmt.Sprint(v); !slices.Contains(values, text) {
				values = append(values, text)
			}
		}
	}
	return values
}

// shapeAt returns the shape of the mapping around the cursor. In the parameters of a
// call it is that of the action.
func (s *server) shapeAt(c *cursor) shape {
	path := c.path()
	for i, l := range c.levels {
		if l.key != "with" && l.key != "config" && l.key != "params" {
			continue
		}
		if params, ok := s.params(c, cmp.Or(l.siblings["uses"], l.siblings["action"])); ok {
			return params.at(path[i+1:]...)
		}
	}
	found := s.schema.at(path...)
	for _, key := range []string{"with", "config", "params"} {
		if _, ok := c.siblings[key]; ok {
			return found
		}
	}
	if params, ok := s.params(c, c.siblings["action"]); ok { // beside action
		found.all = slices.Concat(found.all, params.all)
	}
	return found
}

// params returns the shape of an action's parameters.
func (s *server) params(c *cursor, action string) (shape, bool) {
	a := s.action(c.doc.uri, action)
	if a == nil || a.Params == nil {
		return shape{}, false
	}
	text, err := json.Marshal(a.Params)
	return newShape(text), err == nil
}

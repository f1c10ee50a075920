package spec

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/source"
	"github.com/the-edge-agent/tea/sdk/value"
)

// typeSpellings are the spellings of types.
var typeSpellings = []struct {
	spelling string
	meaning  Type
}{
	{"str", TypeString},
	{"int", TypeInt},
	{"float", TypeFloat},
	{"bool", TypeBool},
	{"list", TypeList},
	{"dict", TypeDict},
	{"any", TypeAny},
	{"string", TypeString},
	{"integer", TypeInt},
	{"number", TypeFloat},
	{"boolean", TypeBool},
	{"array", TypeList},
	{"object", TypeDict},
}

func typeNames() []string {
	names := make([]string, len(typeSpellings))
	for i, t := range typeSpellings {
		names[i] = t.spelling
	}
	return names
}

func typeOf(spelling string) Type {
	for _, t := range typeSpellings {
		if t.spelling == spelling {
			return t.meaning
		}
	}
	return TypeAny
}

func reducerNames() []string {
	reducers := []Reducer{ReduceAppend, ReduceExtend, ReduceMerge, ReduceAdd, ReduceUnion, ReduceMax, ReduceMin}
	names := make([]string, len(reducers))
	for i, r := range reducers {
		names[i] = string(r)
	}
	return names
}

// Accepts reports whether a value in the value model has the type.
func (t Type) Accepts(v any) bool {
	switch v.(type) {
	case string:
		return t == TypeString || t == TypeAny
	case int64, json.Number:
		return t == TypeInt || t == TypeFloat || t == TypeAny
	case float64:
		return t == TypeFloat || t == TypeAny
	case bool:
		return t == TypeBool || t == TypeAny
	case []any:
		return t == TypeList || t == TypeAny
	case map[string]any:
		return t == TypeDict || t == TypeAny
	}
	return t == TypeAny
}

func (d *decoder) schema(v element) []Key {
	var keys []Key
	for _, e := range v.entries() {
		k := Key{Pos: e.pos(), Name: e.key.Text, Type: TypeAny}
		switch e.node.Kind {
		case source.String:
			k.Type = typeOf(e.node.Text)
		case source.Map:
			m := openMapping(e.element, d.grammar.schemaKey)
			k.Type = typeOf(m.string("type"))
			k.Required = m.isTrue("required")
			k.Reducer = Reducer(m.string("reducer"))
			k.Description = m.string("description")
			d.checkReducer(k, m)
			if preset := m.get("default"); preset.node != nil {
				k.Default, k.HasDefault = preset.node.Value(), true
				d.checkType(k, preset)
				d.warnTemplates("default", preset)
			}
		}
		keys = append(keys, k)
	}
	return keys
}

// reducerTypes are the types that a reducer supports.
var reducerTypes = map[Reducer][]Type{
	ReduceAppend: {TypeList}, ReduceExtend: {TypeList}, ReduceUnion: {TypeList}, ReduceMerge: {TypeDict},
	ReduceAdd: {TypeInt, TypeFloat, TypeString, TypeList},
	ReduceMax: {TypeInt, TypeFloat, TypeString}, ReduceMin: {TypeInt, TypeFloat, TypeString},
}

// checkReducer reports a reducer that does not support the key's type.
func (d *decoder) checkReducer(k Key, m mapping) {
	types, ok := reducerTypes[k.Reducer]
	if !ok || k.Type == TypeAny || slices.Contains(types, k.Type) {
		return
	}
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	d.errorf(diagcode.SchemaMismatch, m.get("reducer").pos(), "choose another reducer, or the type "+alternatives(names),
		"state key %q: the reducer %s does not work on %s", k.Name, k.Reducer, k.Type)
}

// checkInitialState compares initial_state with the types of the schema.
func (d *decoder) checkInitialState(schema []Key, initial element) {
	types := make(map[string]Key, len(schema))
	for _, k := range schema {
		types[k.Name] = k
	}
	for _, e := range initial.entries() {
		if k, ok := types[e.key.Text]; ok {
			d.checkType(k, e.element)
		}
	}
}

// warnTemplates warns of templates in a constant: their roots are tea's.
func (d *decoder) warnTemplates(key string, v element) {
	if v.node == nil {
		return
	}
	for _, t := range newTree(v).Places {
		_, after, _ := strings.Cut(t.Value, "{{")
		words := strings.FieldsFunc(after, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') })
		if len(words) > 0 && slices.Contains(templateNames, words[0]) {
			d.diags.Warnf(diagcode.ValueNotAllowed, t.Pos, "set the key in a node, or write the value where it is used", "%s: templates have no effect here; the text is used as it is", key)
		}
	}
}

// checkType reports a value that does not have the type of its key; null is
// allowed.
func (d *decoder) checkType(k Key, v element) {
	got := v.node.Value()
	if got != nil && !k.Type.Accepts(got) {
		d.errorf(diagcode.SchemaMismatch, v.pos(), "change the value, or the type in state_schema", "state key %q: expected %s, got %s", k.Name, k.Type, value.TypeName(got))
	}
}

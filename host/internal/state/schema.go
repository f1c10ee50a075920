package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Schema is a compiled state_schema. A nil Schema allows everything.
type Schema struct{ keys map[string]spec.Key }

// NewSchema compiles a list of keys; nil for an empty one.
func NewSchema(keys []spec.Key) *Schema {
	if len(keys) == 0 {
		return nil
	}
	s := &Schema{keys: make(map[string]spec.Key, len(keys))}
	for _, k := range keys {
		s.keys[k.Name] = k
	}
	return s
}

// Reducer returns a key's reducer.
func (s *Schema) Reducer(key string) spec.Reducer {
	if s == nil {
		return spec.ReduceReplace
	}
	return s.keys[key].Reducer
}

// Initial returns the initial state of a run: the schema's defaults, then the
// workflow's initial state, then the input, each checked. The error is an
// [*flow.InputError].
func (s *Schema) Initial(initial, input map[string]any) (map[string]any, error) {
	values := make(map[string]any, len(initial)+len(input))
	if s != nil {
		for name, k := range s.keys {
			if k.HasDefault {
				values[name] = k.Default
			}
		}
	}
	for k, v := range initial {
		values[k] = v
	}
	for k, v := range input {
		values[k] = v
	}
	if s == nil {
		return values, nil
	}
	var faults faults
	for name, k := range s.keys {
		v, ok := values[name]
		if !ok || v == nil {
			if k.Required {
				faults = append(faults, &flow.TypeError{Key: name, Expected: string(k.Type)})
			}
			continue
		}
		values[name] = faults.convert(k, v)
	}
	if err := faults.err(); err != nil {
		return nil, err
	}
	return values, nil
}

// faults are the values that do not match.
type faults []*flow.TypeError

// convert returns v converted for a key, or adds a fault.
func (f *faults) convert(k spec.Key, v any) any {
	fitted, err := convert(k, v)
	if fault := new(flow.TypeError); errors.As(err, &fault) {
		*f = append(*f, fault)
	}
	return fitted
}

func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	sort.Slice(f, func(i, k int) bool { return f[i].Key < f[k].Key })
	return &flow.InputError{Faults: f}
}

// Convert checks values that replace the current ones, without reducers. The error is an
// [*flow.InputError]. The result may differ from values in the form of numbers.
func (s *Schema) Convert(values map[string]any) (map[string]any, error) {
	if s == nil {
		return values, nil
	}
	fitted := make(map[string]any, len(values))
	var faults faults
	for name, v := range values {
		if k, ok := s.keys[name]; ok {
			v = faults.convert(k, v)
		}
		fitted[name] = v
	}
	if err := faults.err(); err != nil {
		return nil, err
	}
	return fitted, nil
}

func (s *Schema) reduce(key string, old, update any) (any, error) {
	k, ok := s.keys[key]
	if !ok {
		return update, nil
	}
	v := update
	if k.Reducer != spec.ReduceReplace {
		var err error
		if v, err = Reduce(k.Reducer, key, old, update); err != nil {
			return nil, err
		}
	}
	return convert(k, v)
}

// convert checks a value against a key's type and converts a whole float to an integer
// if the key is one. null is valid unless the key is required.
func convert(k spec.Key, v any) (any, error) {
	if v == nil {
		if k.Required {
			return nil, &flow.TypeError{Key: k.Name, Expected: string(k.Type), Got: "null"}
		}
		return nil, nil
	}
	var ok bool
	switch k.Type {
	case spec.TypeString:
		_, ok = v.(string)
	case spec.TypeInt:
		if whole, ok := value.Integer(v); ok {
			if _, isFloat := v.(float64); !isFloat {
				return v, nil
			}
			if i, fits := whole.(int64); fits {
				return i, nil
			}
		}
	case spec.TypeFloat:
		ok = value.IsNumber(v)
	case spec.TypeBool:
		_, ok = v.(bool)
	case spec.TypeList:
		_, ok = v.([]any)
	case spec.TypeDict:
		_, ok = v.(map[string]any)
		if list, isList := v.([]any); isList && len(list) == 0 {
			return nil, &flow.TypeError{Key: k.Name, Expected: string(k.Type), Got: "an empty list (in Lua {} is one; tea.json.object({}) makes an empty dict)"}
		}
	default:
		return v, nil
	}
	if !ok {
		return nil, &flow.TypeError{Key: k.Name, Expected: string(k.Type), Got: describe(v)}
	}
	return v, nil
}

// describe names a value's type in the terms of state_schema, with the value if it is
// short.
func describe(v any) string {
	names := map[string]spec.Type{
		"boolean": spec.TypeBool, "integer": spec.TypeInt, "number": spec.TypeFloat,
		"string": spec.TypeString, "array": spec.TypeList, "object": spec.TypeDict,
	}
	name := string(names[value.TypeName(v)])
	switch v.(type) {
	case bool, int64, float64, string, json.Number:
		text, err := value.Encode(v)
		if err != nil {
			return name
		}
		if len(text) > 40 {
			text = append(bytes.ToValidUTF8(text[:37], nil), "..."...)
		}
		return fmt.Sprintf("%s (%s)", name, text)
	}
	return name
}

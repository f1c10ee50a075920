// Package schema builds JSON Schemas (2020-12) from Go types, so that the
// parameters of an action are described once, in its struct. Start with [Of].
package schema

import (
	"bytes"
	"encoding/json"

	"github.com/the-edge-agent/tea/sdk/value"
)

// Schema is a JSON Schema. The keywords that actions need most are fields. The
// zero value allows anything. A schema is shared and must not be changed after it
// was passed on.
type Schema struct {
	Type                 Types       `json:"type,omitempty"`
	Title                string      `json:"title,omitempty"`
	Description          string      `json:"description,omitempty"`
	Properties           *Properties `json:"properties,omitempty"`
	Required             []string    `json:"required,omitempty"`
	AdditionalProperties *Schema     `json:"additionalProperties,omitempty"`
	Items                *Schema     `json:"items,omitempty"`
	AnyOf                []*Schema   `json:"anyOf,omitempty"`
	Enum                 []any       `json:"enum,omitempty"`
	Default              any         `json:"default,omitempty"`
	Minimum              *float64    `json:"minimum,omitempty"`
	Maximum              *float64    `json:"maximum,omitempty"`
	MinLength            *int        `json:"minLength,omitempty"`
	MaxLength            *int        `json:"maxLength,omitempty"`
	MinItems             *int        `json:"minItems,omitempty"`
	Pattern              string      `json:"pattern,omitempty"`
	// Format is checked if JSON Schema defines it. In settings, "path" marks the
	// name of a file or directory: the host makes it absolute, relative to the
	// workflow file that contains it, unless it is a URL (it contains "://").
	// "timezone" is the name of a time zone, "re2" a regular expression of Go. Other formats are annotations.
	Format string `json:"format,omitempty"`
	// WriteOnly marks a setting as secret: the host masks its value wherever it
	// prints or stores something.
	WriteOnly bool `json:"writeOnly,omitempty"`

	// Never marks the schema that allows nothing; it is written as false.
	Never bool `json:"-"`
	// Extra has other keywords that package jsonschema supports, such as oneOf,
	// as values of the model.
	Extra map[string]any `json:"-"`
}

// plain is Schema without its methods.
type plain Schema

// Member returns the schema of an object's member; nil if it can be anything,
// or if s is nil.
func (s *Schema) Member(name string) *Schema {
	if s == nil {
		return nil
	}
	if inside := s.Properties.Get(name); inside != nil {
		return inside
	}
	return s.AdditionalProperties
}

// MarshalJSON writes false for the schema that allows nothing.
func (s *Schema) MarshalJSON() ([]byte, error) {
	if s.Never {
		return []byte("false"), nil
	}
	raw, err := json.Marshal((*plain)(s))
	if err != nil || len(s.Extra) == 0 {
		return raw, err
	}
	extra, err := value.Encode(s.Extra)
	if err != nil || len(raw) == len("{}") {
		return extra, err
	}
	return append(append(raw[:len(raw)-1], ','), extra[1:]...), nil
}

// Types are the allowed JSON types. A single type is written as a string.
type Types []string

// MarshalJSON writes a single type as a string.
func (t Types) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return json.Marshal(t[0])
	}
	return json.Marshal([]string(t))
}

// Property is one named member of an object. It belongs to its [Schema].
type Property struct {
	Name   string
	Schema *Schema
}

// Properties are in the order of their declaration, which is the order of the
// documentation.
type Properties []Property

// Get returns the property with a name, or nil.
func (p *Properties) Get(name string) *Schema {
	if p == nil {
		return nil
	}
	for _, prop := range *p {
		if prop.Name == name {
			return prop.Schema
		}
	}
	return nil
}

// Names returns the property names in order.
func (p *Properties) Names() []string {
	if p == nil {
		return nil
	}
	names := make([]string, len(*p))
	for i, prop := range *p {
		names[i] = prop.Name
	}
	return names
}

// MarshalJSON writes an object in declaration order.
func (p Properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, prop := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(prop.Name)
		if err != nil {
			return nil, err
		}
		body, err := json.Marshal(prop.Schema)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(body)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

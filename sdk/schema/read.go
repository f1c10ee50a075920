package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/jsonschema"
)

// A host reads the schemas of all plugins at every start. Decoding each level of a
// schema separately with encoding/json would read the deepest levels a dozen times;
// these functions find the values in JSON that is known to be valid.

// UnmarshalJSON reads a schema; true and false are schemas too.
func (s *Schema) UnmarshalJSON(data []byte) error {
	if !json.Valid(data) {
		return json.Unmarshal(data, new(any)) // returns an error with the position
	}
	return s.read(data)
}

// read reads a schema from valid JSON. A keyword that package jsonschema does
// not support is an error, because it could not be checked.
func (s *Schema) read(data []byte) error {
	data = bytes.TrimSpace(data)
	*s = Schema{Never: string(data) == "false"}
	switch {
	case s.Never, string(data) == "true", string(data) == "null":
		return nil
	case data[0] != '{':
		return fmt.Errorf("expected a schema (an object, true or false), got %.40s", data)
	}
	return s.readMembers(data)
}

// readMembers adds the keywords of an object.
func (s *Schema) readMembers(data []byte) error {
	for name, raw := range members(data) {
		if string(raw) == "null" && name != "default" {
			continue
		}
		if err := s.readMember(name, raw); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (s *Schema) readMember(name string, raw []byte) (err error) {
	switch name {
	case "type":
		return s.Type.read(raw)
	case "title":
		s.Title, err = text(raw)
	case "description":
		s.Description, err = text(raw)
	case "properties":
		s.Properties = new(Properties)
		return s.Properties.read(raw)
	case "required":
		s.Required, err = texts(raw)
	case "additionalProperties":
		s.AdditionalProperties = new(Schema)
		return s.AdditionalProperties.read(raw)
	case "items":
		if raw[0] == '[' { // draft 7
			return s.readExtra(name, raw)
		}
		s.Items = new(Schema)
		return s.Items.read(raw)
	case "anyOf":
		return s.readAnyOf(raw)
	case "enum":
		s.Enum, err = values(raw)
	case "default":
		s.Default, err = anything(raw)
	case "minimum":
		return json.Unmarshal(raw, &s.Minimum)
	case "maximum":
		return json.Unmarshal(raw, &s.Maximum)
	case "minLength":
		return json.Unmarshal(raw, &s.MinLength)
	case "maxLength":
		return json.Unmarshal(raw, &s.MaxLength)
	case "minItems":
		return json.Unmarshal(raw, &s.MinItems)
	case "pattern":
		s.Pattern, err = text(raw)
	case "format":
		s.Format, err = text(raw)
	case "writeOnly":
		return json.Unmarshal(raw, &s.WriteOnly)
	default:
		return s.readExtra(name, raw)
	}
	return err
}

func (s *Schema) readExtra(name string, raw []byte) error {
	v, err := value.Decode(raw)
	if err != nil {
		return err
	}
	if err := jsonschema.CheckKeywords(map[string]any{name: v}); err != nil {
		return err
	}
	if s.Extra == nil {
		s.Extra = map[string]any{}
	}
	s.Extra[name] = v
	return nil
}

func (s *Schema) readAnyOf(raw []byte) error {
	if raw[0] != '[' {
		return fmt.Errorf("expected a list, got %.40s", raw)
	}
	for one := range elements(raw) {
		inner := new(Schema)
		if err := inner.read(one); err != nil {
			return err
		}
		s.AnyOf = append(s.AnyOf, inner)
	}
	return nil
}

func values(raw []byte) (list []any, err error) {
	if raw[0] != '[' {
		return nil, fmt.Errorf("expected a list, got %.40s", raw)
	}
	for one := range elements(raw) {
		v, err := anything(one)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// anything reads a value; most values are strings.
func anything(raw []byte) (any, error) {
	if raw[0] == '"' {
		return text(raw)
	}
	return value.Decode(raw)
}

func texts(raw []byte) (list []string, err error) {
	if raw[0] != '[' {
		return nil, fmt.Errorf("expected a list, got %.40s", raw)
	}
	for one := range elements(raw) {
		s, err := text(one)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// UnmarshalJSON reads a string or a list of strings.
func (t *Types) UnmarshalJSON(data []byte) error {
	if !json.Valid(data) {
		return json.Unmarshal(data, new(any))
	}
	return t.read(bytes.TrimSpace(data))
}

func (t *Types) read(raw []byte) error {
	if raw[0] == '"' {
		one, err := text(raw)
		*t = Types{one}
		return err
	}
	list, err := texts(raw)
	*t = list
	return err
}

// UnmarshalJSON reads an object, keeping the order of its members.
func (p *Properties) UnmarshalJSON(data []byte) error {
	if !json.Valid(data) {
		return json.Unmarshal(data, new(any))
	}
	return p.read(bytes.TrimSpace(data))
}

func (p *Properties) read(raw []byte) error {
	if raw[0] != '{' {
		return fmt.Errorf("expected an object, got %.40s", raw)
	}
	for name, raw := range members(raw) {
		prop := Property{Name: name, Schema: new(Schema)}
		if err := prop.Schema.read(raw); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		*p = append(*p, prop)
	}
	return nil
}

// text reads a string.
func text(raw []byte) (s string, err error) {
	if len(raw) > 1 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw[1 : len(raw)-1]), nil
	}
	err = json.Unmarshal(raw, &s)
	return s, err
}

// members iterates over the members of an object in valid JSON: the name and
// the bytes of the value.
func members(data []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for at := next(data, 1); data[at] != '}'; {
			end := skip(data, at)
			name, _ := text(data[at:end]) // it is valid
			at = next(data, end)
			end = skip(data, at)
			if !yield(name, data[at:end]) {
				return
			}
			at = next(data, end)
		}
	}
}

// elements iterates over the bytes of the values of a list in valid JSON.
func elements(data []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for at := next(data, 1); data[at] != ']'; {
			end := skip(data, at)
			if !yield(data[at:end]) {
				return
			}
			at = next(data, end)
		}
	}
}

// next skips white space, commas and colons.
func next(data []byte, at int) int {
	for ; ; at++ {
		switch data[at] {
		case ' ', '\t', '\r', '\n', ',', ':':
		default:
			return at
		}
	}
}

// skip returns the end of the value that begins at at.
func skip(data []byte, at int) int {
	switch data[at] {
	case '"':
		return skipString(data, at)
	case '{', '[':
	default:
		end := bytes.IndexAny(data[at:], " \t\r\n,:]}")
		if end < 0 {
			return len(data)
		}
		return at + end
	}
	for depth := 0; ; at++ {
		switch data[at] {
		case '"':
			at = skipString(data, at) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return at + 1
			}
		}
	}
}

func skipString(data []byte, at int) int {
	for at++; ; at++ {
		switch data[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
}

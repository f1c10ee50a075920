package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Of gives the schema of T as encoding/json reads and writes it. A struct
// field is required unless its json tag says omitempty or omitzero; unknown
// members are not allowed. Field tags add the rest:
//
//	doc:"what it means"  default:"30"  enum:"a,b"  minimum:"0"  maximum:"9"
//	minLength:"1"  maxLength:"80"  minItems:"1"  pattern:"^a"  format:"uri"
//
// Of panics where a tag is malformed or T has no JSON form: both are bugs in
// the program, found at its first start.
func Of[T any]() *Schema { return ofType(reflect.TypeFor[T](), nil) }

var (
	rawType      = reflect.TypeFor[json.RawMessage]()
	numberType   = reflect.TypeFor[json.Number]()
	timeType     = reflect.TypeFor[time.Time]()
	schemaType   = reflect.TypeFor[Schema]()
	describeType = reflect.TypeFor[Describer]()
)

// Describer is implemented by types with a schema of their own making.
type Describer interface{ JSONSchema() *Schema }

func ofType(t reflect.Type, seen []reflect.Type) *Schema {
	if t.Implements(describeType) {
		return reflect.Zero(t).Interface().(Describer).JSONSchema()
	}
	switch t {
	case rawType:
		return &Schema{}
	case numberType:
		return &Schema{Type: Types{"number"}}
	case timeType:
		return &Schema{Type: Types{"string"}, Format: "date-time"}
	case schemaType:
		return &Schema{Type: Types{"object", "boolean"}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return ofType(t.Elem(), seen)
	case reflect.Interface:
		return &Schema{}
	case reflect.Bool:
		return &Schema{Type: Types{"boolean"}}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &Schema{Type: Types{"integer"}}
	case reflect.Float32, reflect.Float64:
		return &Schema{Type: Types{"number"}}
	case reflect.String:
		return &Schema{Type: Types{"string"}}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return &Schema{Type: Types{"string"}, Format: "byte"}
		}
		return &Schema{Type: Types{"array"}, Items: ofType(t.Elem(), seen)}
	case reflect.Map:
		s := &Schema{Type: Types{"object"}}
		if t.Elem().Kind() != reflect.Interface {
			s.AdditionalProperties = ofType(t.Elem(), seen)
		}
		return s
	case reflect.Struct:
		for _, outer := range seen {
			if outer == t {
				return &Schema{Type: Types{"object"}}
			}
		}
		s := &Schema{Type: Types{"object"}, Properties: &Properties{}, AdditionalProperties: &Schema{Never: true}}
		addFields(s, t, append(seen, t))
		return s
	}
	panic(fmt.Sprintf("schema: %s has no JSON form", t))
}

func addFields(s *Schema, t reflect.Type, seen []reflect.Type) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() {
			continue
		}
		if field.Anonymous && name == "" && field.Type.Kind() == reflect.Struct {
			addFields(s, field.Type, seen)
			continue
		}
		if name == "" {
			name = field.Name
		}
		prop := ofType(field.Type, seen)
		applyTags(prop, field)
		*s.Properties = append(*s.Properties, Property{Name: name, Schema: prop})
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			s.Required = append(s.Required, name)
		}
	}
}

func applyTags(s *Schema, field reflect.StructField) {
	tag := field.Tag
	s.Description = tag.Get("doc")
	if text, ok := tag.Lookup("default"); ok {
		s.Default = parseTag(s, field, text)
	}
	if list, ok := tag.Lookup("enum"); ok {
		for text := range strings.SplitSeq(list, ",") {
			s.Enum = append(s.Enum, parseTag(s, field, text))
		}
	}
	if text, ok := tag.Lookup("pattern"); ok {
		s.Pattern = text
	}
	if text, ok := tag.Lookup("format"); ok {
		s.Format = text
	}
	s.Minimum = floatTag(field, "minimum", s.Minimum)
	s.Maximum = floatTag(field, "maximum", s.Maximum)
	s.MinLength = intTag(field, "minLength", s.MinLength)
	s.MaxLength = intTag(field, "maxLength", s.MaxLength)
	s.MinItems = intTag(field, "minItems", s.MinItems)
}

// parseTag reads a tag's text as JSON, or as a plain string where the field is one.
func parseTag(s *Schema, field reflect.StructField, text string) any {
	if len(s.Type) == 1 && s.Type[0] == "string" {
		return text
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic(fmt.Sprintf("schema: field %s: tag value %q is not JSON: %v", field.Name, text, err))
	}
	return v
}

func floatTag(field reflect.StructField, name string, old *float64) *float64 {
	text, ok := field.Tag.Lookup(name)
	if !ok {
		return old
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(fmt.Sprintf("schema: field %s: tag %s: %v", field.Name, name, err))
	}
	return &f
}

func intTag(field reflect.StructField, name string, old *int) *int {
	text, ok := field.Tag.Lookup(name)
	if !ok {
		return old
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(fmt.Sprintf("schema: field %s: tag %s: %v", field.Name, name, err))
	}
	return &n
}

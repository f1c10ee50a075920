package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/sdk/value"
)

// Of returns the schema of T as encoding/json reads and writes it. A struct field
// is required unless its json tag has omitempty or omitzero, or it has a default;
// unknown members are not allowed. A type that marshals itself to text is a
// string; a type that marshals itself to JSON can be anything. Field tags add the
// rest:
//
//	doc:"what it means"  default:"30"  enum:"a,b"  minimum:"0"  maximum:"9"
//	minLength:"1"  maxLength:"80"  minItems:"1"  pattern:"^a"  format:"uri"  secret:"true"
//	atMost:"max"  keyOf:"targets"  keyPattern:"<(.+)>"
//
// The last line relates members of settings. With atMost, a number must not exceed the member
// "max" of the same object. With keyOf, a string or each string of a list must be a key of
// the member "targets" of the same object; with "/targets", of the settings as a whole. With
// keyPattern, the group of each match in the string must be a key.
//
// Of panics if a tag is malformed or T has no JSON form. Both are bugs in the
// program, which appear at its first start.
func Of[T any]() *Schema { return OfType(reflect.TypeFor[T]()) }

// With is [Of] with additional keywords, a JSON object such as
// {"dependentRequired": {"cert": ["key"]}}. It panics if package jsonschema does not support them.
func With[T any](keywords string) *Schema {
	s := OfType(reflect.TypeFor[T]())
	if !json.Valid([]byte(keywords)) || keywords[0] != '{' {
		panic("schema: expected an object in JSON, got " + keywords)
	}
	if err := s.readMembers([]byte(keywords)); err != nil {
		panic(fmt.Sprintf("schema: %v", err))
	}
	return s
}

// OfType is [Of] for a type that is known only at run time.
func OfType(t reflect.Type) *Schema { return ofType(t, nil) }

var (
	rawType      = reflect.TypeFor[json.RawMessage]()
	numberType   = reflect.TypeFor[json.Number]()
	timeType     = reflect.TypeFor[time.Time]()
	schemaType   = reflect.TypeFor[Schema]()
	describeType = reflect.TypeFor[Describer]()
	jsonType     = reflect.TypeFor[json.Marshaler]()
	textType     = reflect.TypeFor[encoding.TextMarshaler]()
)

// Describer is implemented by types that define their own schema, with the
// receiver as a value or as a pointer. The schema is not changed.
type Describer interface{ JSONSchema() *Schema }

func ofType(t reflect.Type, seen []reflect.Type) *Schema {
	if t.Kind() == reflect.Pointer {
		return ofType(t.Elem(), seen)
	}
	if reflect.PointerTo(t).Implements(describeType) {
		described := *reflect.New(t).Interface().(Describer).JSONSchema() // tags are added to it
		return &described
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
	switch {
	case reflect.PointerTo(t).Implements(jsonType):
		return &Schema{}
	case reflect.PointerTo(t).Implements(textType):
		return &Schema{Type: Types{"string"}}
	}
	return ofKind(t, seen)
}

func ofKind(t reflect.Type, seen []reflect.Type) *Schema {
	switch t.Kind() {
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
		if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
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
		if slices.Contains(seen, t) {
			return &Schema{Type: Types{"object"}}
		}
		s := &Schema{Type: Types{"object"}, Properties: &Properties{}, AdditionalProperties: &Schema{Never: true}}
		o := object{schema: s, depth: map[string]int{}}
		o.addFields(t, append(seen, t), 0)
		return s
	}
	panic(fmt.Sprintf("schema: %s has no JSON form", t))
}

// object builds the schema of a struct.
type object struct {
	schema *Schema
	// depth is the embedding depth of the struct that has a property.
	depth map[string]int
}

func (o *object) addFields(t reflect.Type, seen []reflect.Type, depth int) {
	for i := range t.NumField() {
		field := t.Field(i)
		tag := field.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		embedded := field.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		if tag != "-" && field.Anonymous && name == "" && embedded.Kind() == reflect.Struct {
			if !slices.Contains(seen, embedded) {
				o.addFields(embedded, append(seen, embedded), depth+1)
			}
			continue
		}
		if tag == "-" || !field.IsExported() {
			continue
		}
		if name == "" {
			name = field.Name
		}
		prop := ofType(field.Type, seen)
		applyTags(prop, field)
		optional := prop.Default != nil || strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		o.add(Property{Name: name, Schema: prop}, !optional, depth)
	}
}

// add adds a property. If two have the same name, the less deeply embedded one is
// used, as in encoding/json.
func (o *object) add(prop Property, required bool, depth int) {
	s := o.schema
	same := func(p Property) bool { return p.Name == prop.Name }
	if i := slices.IndexFunc(*s.Properties, same); i < 0 {
		*s.Properties = append(*s.Properties, prop)
	} else if depth < o.depth[prop.Name] {
		(*s.Properties)[i] = prop
		s.Required = slices.DeleteFunc(s.Required, func(name string) bool { return name == prop.Name })
	} else {
		return
	}
	o.depth[prop.Name] = depth
	if required {
		s.Required = append(s.Required, prop.Name)
	}
}

func applyTags(s *Schema, field reflect.StructField) {
	for name, text := range tags(field) {
		switch name {
		case "doc":
			s.Description = text
		case "default":
			s.Default = parseTag(s, field, text)
		case "enum":
			for one := range strings.SplitSeq(text, ",") {
				s.Enum = append(s.Enum, parseTag(s, field, one))
			}
		case "pattern":
			s.Pattern = text
		case "format":
			s.Format = text
		case "atMost", "keyOf", "keyPattern":
			target := s
			if s.Items != nil {
				target = s.Items
			}
			extra := map[string]any{"x-tea-" + name: text} // do not modify the map of a Describer
			maps.Copy(extra, target.Extra)
			target.Extra = extra
		case "secret":
			s.WriteOnly = *number(field, name, text, strconv.ParseBool)
		case "minimum":
			s.Minimum = number(field, name, text, parseFloat)
		case "maximum":
			s.Maximum = number(field, name, text, parseFloat)
		case "minLength":
			s.MinLength = number(field, name, text, strconv.Atoi)
		case "maxLength":
			s.MaxLength = number(field, name, text, strconv.Atoi)
		case "minItems":
			s.MinItems = number(field, name, text, strconv.Atoi)
		}
	}
	if problem := misplacedTag(s); problem != "" {
		panic(fmt.Sprintf("schema: field %s: %s", field.Name, problem))
	}
	for _, v := range s.Enum {
		if problem := invalidValue(s, v); problem != "" {
			panic(fmt.Sprintf("schema: field %s: enum %v %s", field.Name, v, problem))
		}
	}
	if s.Default == nil {
		return
	}
	if problem := invalidValue(s, s.Default); problem != "" {
		panic(fmt.Sprintf("schema: field %s: default %v %s", field.Name, s.Default, problem))
	}
	if field.Type.Kind() == reflect.Pointer {
		s.Type = append(s.Type, "null") // an explicit null overrides the default
	}
}

// misplacedTag reports a tag that does not apply to the type of its field, a
// pattern that is not valid, or limits that exclude each other.
func misplacedTag(s *Schema) string {
	is := func(types ...string) bool {
		return len(s.Type) == 0 || slices.ContainsFunc(s.Type, func(t string) bool { return slices.Contains(types, t) })
	}
	switch {
	case (s.Minimum != nil || s.Maximum != nil) && !is("integer", "number"):
		return "minimum and maximum are for numbers"
	case (s.MinLength != nil || s.MaxLength != nil || s.Pattern != "") && !is("string"):
		return "minLength, maxLength and pattern are for strings"
	case s.MinItems != nil && !is("array"):
		return "minItems is for lists"
	case s.Minimum != nil && s.Maximum != nil && *s.Minimum > *s.Maximum:
		return "minimum is above maximum"
	case s.MinLength != nil && s.MaxLength != nil && *s.MinLength > *s.MaxLength:
		return "minLength is above maxLength"
	}
	if s.Pattern != "" {
		if _, err := syntax.Parse(s.Pattern, syntax.Perl); err != nil {
			return "pattern: " + err.Error()
		}
	}
	return ""
}

// invalidValue reports why a default or a listed value is not valid. It covers what tags
// can express: compiling and running the schemas would add 4 ms to each start of a
// large plugin.
func invalidValue(s *Schema, v any) string {
	fits := func(t string) bool {
		return t == value.TypeName(v) || t == "number" && value.IsNumber(v) || t == "integer" && value.IsInteger(v)
	}
	if len(s.Type) > 0 && !slices.ContainsFunc(s.Type, fits) {
		return "is not of type " + strings.Join(s.Type, " or ")
	}
	if len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(e any) bool { return value.Equal(e, v) }) {
		return "is not in enum"
	}
	return outOfBounds(s, v)
}

// outOfBounds reports the bound of a schema that a value violates.
func outOfBounds(s *Schema, v any) string {
	text, isText := v.(string)
	list, isList := v.([]any)
	number, isNumber := value.Float(v)
	switch {
	case isNumber && s.Minimum != nil && number < *s.Minimum:
		return "is below minimum"
	case isNumber && s.Maximum != nil && number > *s.Maximum:
		return "is above maximum"
	case isText && s.MinLength != nil && utf8.RuneCountInString(text) < *s.MinLength:
		return "is shorter than minLength"
	case isText && s.MaxLength != nil && utf8.RuneCountInString(text) > *s.MaxLength:
		return "is longer than maxLength"
	case isText && s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(text):
		return "does not match pattern"
	case isList && s.MinItems != nil && len(list) < *s.MinItems:
		return "is shorter than minItems"
	}
	return ""
}

// tags iterates over the tags of a field. Looking up each tag by name would parse
// all of them each time, and a plugin builds its schemas at every start.
func tags(field reflect.StructField) iter.Seq2[string, string] {
	return func(yield func(name, text string) bool) {
		for rest := strings.TrimLeft(string(field.Tag), " "); rest != ""; {
			name, value, _ := strings.Cut(rest, ":")
			quoted, err := strconv.QuotedPrefix(value)
			if err != nil {
				panic(fmt.Sprintf("schema: field %s: tag %s is not of the form key:\"value\"", field.Name, rest))
			}
			text, err := strconv.Unquote(quoted)
			if err != nil || !yield(name, text) {
				return
			}
			rest = strings.TrimLeft(value[len(quoted):], " ")
		}
	}
}

// parseTag parses the text of a tag as JSON, or as a plain string if the field
// is one.
func parseTag(s *Schema, field reflect.StructField, text string) any {
	if len(s.Type) == 1 && s.Type[0] == "string" {
		return text
	}
	v, err := value.Decode([]byte(text))
	if err != nil {
		panic(fmt.Sprintf("schema: field %s: tag value %q is not JSON: %v", field.Name, text, err))
	}
	return v
}

func parseFloat(text string) (float64, error) { return strconv.ParseFloat(text, 64) }

func number[N int | float64 | bool](field reflect.StructField, name, text string, parse func(string) (N, error)) *N {
	n, err := parse(text)
	if err != nil {
		panic(fmt.Sprintf("schema: field %s: tag %s: %v", field.Name, name, err))
	}
	return &n
}

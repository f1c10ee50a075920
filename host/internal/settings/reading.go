package settings

import (
	"encoding/json"
	"slices"

	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// reading is one pass over a key's value with one schema.
type reading struct {
	text *spec.Tree
	// variables has the paths of text that comes from variables, quoted of text
	// that is valid without its quotes.
	variables, quoted map[string]bool
	// absent has the paths without a value, which count as not set.
	absent map[string]bool
	// members has the allowed names of an object, by its path.
	members map[string][]string
}

func newReading(text *spec.Tree) *reading {
	if text == nil { // only defaults are set
		text = new(spec.Tree)
	}
	return &reading{text: text, variables: map[string]bool{}, quoted: map[string]bool{}, absent: map[string]bool{}, members: map[string][]string{}}
}

// typed converts the values of variables in v, which are text, to the types
// that the schema expects. s can be nil. v is changed in place.
func (r *reading) typed(v any, s *schema.Schema, path string) any {
	switch given := v.(type) {
	case string:
		v = r.scalar(given, s, path)
	case []any:
		for i, e := range given {
			given[i] = r.typed(e, itemsOf(s), diag.Index(path, i))
		}
	case map[string]any:
		if s != nil {
			r.members[path] = s.Properties.Names()
		}
		for name, e := range given {
			given[name] = r.typed(e, s.Member(name), diag.Key(path, name))
		}
	}
	r.absent[path] = v == nil
	return v
}

func (r *reading) scalar(text string, s *schema.Schema, path string) any {
	v := typedText(text, s)
	if written := r.text.Places[path].Value; text == written || expr.IsTemplate(written) {
		r.quoted[path] = v != nil && v != text
		return text
	}
	r.variables[path] = true
	return v
}

// typedText parses text as a number or a boolean if the schema expects one and
// does not allow text. Empty text that is not valid becomes nil: not set.
func typedText(text string, s *schema.Schema) any {
	types, takesText := typesOf(s)
	if takesText {
		if text == "" && s != nil && len(s.Enum) > 0 && !slices.Contains(s.Enum, any("")) {
			return nil
		}
		return text
	}
	if text == "" {
		return nil
	}
	v, err := value.Decode([]byte(text))
	if err != nil {
		return text
	}
	for _, t := range types {
		if fits(v, t) {
			return v
		}
	}
	return text
}

// typesOf returns the types that a schema names; takesText reports whether text is
// one of them, or whether there are none.
func typesOf(s *schema.Schema) (types []string, takesText bool) {
	if s == nil {
		return nil, true
	}
	types = slices.Clone(s.Type)
	for _, form := range s.AnyOf {
		more, _ := typesOf(form)
		types = append(types, more...)
	}
	return types, len(types) == 0 || slices.Contains(types, "string")
}

// fits reports whether v, a scalar, has a type.
func fits(v any, want string) bool {
	switch v.(type) {
	case bool:
		return want == "boolean"
	case int64, json.Number:
		return want == "integer" || want == "number"
	case float64:
		return want == "number"
	}
	return false
}

func itemsOf(s *schema.Schema) *schema.Schema {
	if s == nil {
		return nil
	}
	return s.Items
}

// Package reference describes actions and settings for documentation.
//
// Start with [Fields], which lists what a schema contains, or [Markdown], which
// returns the reference of a plugin.
package reference

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Field is a member of an object at any depth.
type Field struct {
	// Path is the name, prefixed with the enclosing objects: "options.depth",
	// "rows[].name" in each item of a list, "labels.*" for every other name.
	Path string
	// Type is the type in words, such as "list of string".
	Type        string
	Required    bool
	Description string
	// Rules are the constraints in words, including the default.
	Rules []string
}

// maxDepth bounds the depth of the fields: a manifest can be hostile.
const maxDepth = 8

// Fields returns the fields of an object's schema in the order of their declaration,
// each followed by its inner fields.
func Fields(s *schema.Schema) []Field { return fields("", s, maxDepth) }

func fields(path string, s *schema.Schema, depth int) []Field {
	if s == nil || depth == 0 {
		return nil
	}
	var all []Field
	if s.Properties != nil {
		for _, p := range *s.Properties {
			inside := join(path, p.Name)
			all = append(all, Field{
				Path: inside, Type: typeWords(p.Schema), Required: slices.Contains(s.Required, p.Name),
				Description: description(p.Schema), Rules: rules(p.Schema),
			})
			all = append(all, fields(inside, p.Schema, depth-1)...)
		}
	}
	if other := s.AdditionalProperties; other != nil && !other.Never && described(other) {
		inside := join(path, "*")
		all = append(all, Field{Path: inside, Type: typeWords(other), Description: description(other), Rules: rules(other)})
		all = append(all, fields(inside, other, depth-1)...)
	}
	all = append(all, fields(path+"[]", s.Items, depth-1)...)
	for _, one := range s.AnyOf {
		all = append(all, fields(path, one, depth-1)...)
	}
	return all
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// described reports whether the schema has any content.
func described(s *schema.Schema) bool {
	return len(s.Type) > 0 || s.Description != "" || s.Properties != nil || len(s.AnyOf) > 0 || len(s.Enum) > 0
}

func description(s *schema.Schema) string {
	if s == nil {
		return ""
	}
	return s.Description
}

// typeWords returns the type of a schema in words.
func typeWords(s *schema.Schema) string {
	if s == nil {
		return "any"
	}
	types := slices.Clone([]string(s.Type))
	if len(types) == 0 {
		for _, one := range s.AnyOf {
			if words := typeWords(one); !slices.Contains(types, words) {
				types = append(types, words)
			}
		}
	}
	if len(types) == 0 {
		return "any"
	}
	words := strings.Join(types, " or ")
	if slices.Contains(types, "array") && s.Items != nil && described(s.Items) {
		words = strings.Replace(words, "array", "array of "+typeWords(s.Items), 1)
	}
	return words
}

// rules returns the constraints of a schema in words, including those of a list's
// items.
func rules(s *schema.Schema) []string {
	if s == nil {
		return nil
	}
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if len(s.Enum) > 0 {
		add("one of %s", list(s.Enum))
	}
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		add("from %s to %s", number(*s.Minimum), number(*s.Maximum))
	case s.Minimum != nil:
		add("at least %s", number(*s.Minimum))
	case s.Maximum != nil:
		add("at most %s", number(*s.Maximum))
	}
	if s.MinLength != nil {
		add("at least %s", counted(*s.MinLength, "character"))
	}
	if s.MaxLength != nil {
		add("at most %s", counted(*s.MaxLength, "character"))
	}
	if s.MinItems != nil {
		add("at least %s", counted(*s.MinItems, "item"))
	}
	if s.Pattern != "" {
		add("matches %s", s.Pattern)
	}
	if s.Format != "" {
		add("format %s", s.Format)
	}
	if s.WriteOnly {
		add("secret")
	}
	for _, key := range slices.Sorted(maps.Keys(s.Extra)) {
		if !strings.HasPrefix(key, "x-") && !strings.HasPrefix(key, "$") {
			add("%s %s", key, value.Brief(s.Extra[key]))
		}
	}
	if s.Items != nil && s.Items.Properties == nil {
		for _, rule := range rules(s.Items) {
			add("each %s", rule)
		}
	}
	if s.Default != nil {
		add("default %s", brief(s.Default))
	}
	return all
}

func list(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = brief(v)
	}
	return strings.Join(words, ", ")
}

// brief returns a value of a schema as JSON, and text unchanged.
func brief(v any) string {
	if text, ok := v.(string); ok && text != "" {
		return text
	}
	inModel, err := value.From(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return value.Brief(inModel)
}

// number formats a limit as in JSON, without an exponent if it has at most 21
// digits.
func number(f float64) string {
	if math.Abs(f) < 1e21 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

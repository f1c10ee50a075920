package tea

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/sdk/diag"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
)

// checker holds parameters to what the struct's tags say beyond Go's types.
// Nulls count as absent, as Go's decoder has it.
type checker struct {
	schema   *schema.Schema
	patterns sync.Map // *schema.Schema to *regexp.Regexp
	// limits says that there is something to check, inner that objects
	// inside the parameters have defaults.
	limits, inner bool
}

func newChecker(s *schema.Schema) *checker {
	c := &checker{schema: s}
	if s != nil {
		c.survey(s, 0)
	}
	return c
}

// survey finds out what there is to do for a schema.
func (c *checker) survey(s *schema.Schema, depth int) {
	if len(s.Enum) > 0 || s.Minimum != nil || s.Maximum != nil || s.MinLength != nil || s.MaxLength != nil || s.MinItems != nil || s.Pattern != "" {
		c.limits = true
	}
	if depth > 0 && len(s.Required) > 0 {
		c.limits = true
	}
	for _, p := range propertiesOf(s) {
		c.inner = c.inner || (depth > 0 && p.Schema.Default != nil)
		c.survey(p.Schema, depth+1)
	}
	for _, inside := range []*schema.Schema{s.Items, s.AdditionalProperties} {
		if inside != nil {
			c.survey(inside, depth+1)
		}
	}
}

// fill puts the defaults of objects inside of v in their places; those of v
// itself only at a depth above 0.
func fill(s *schema.Schema, v any, depth int) {
	switch v := v.(type) {
	case []any:
		if s.Items != nil {
			for _, e := range v {
				fill(s.Items, e, depth+1)
			}
		}
	case map[string]any:
		for _, p := range propertiesOf(s) {
			if have, ok := v[p.Name]; ok {
				fill(p.Schema, have, depth+1)
			} else if depth > 0 && p.Schema.Default != nil {
				v[p.Name] = p.Schema.Default
			}
		}
		if s.AdditionalProperties != nil {
			for name, e := range v {
				if s.Properties.Get(name) == nil {
					fill(s.AdditionalProperties, e, depth+1)
				}
			}
		}
	}
}

// check gives what is wrong with a value, in words that follow "parameter
// PATH", and where.
func (c *checker) check(s *schema.Schema, v any, path string) (at, problem string) {
	if v == nil {
		return "", ""
	}
	if len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(e any) bool { return value.Equal(e, v) }) {
		return path, "must be one of " + list(s.Enum) + ", got " + text(v)
	}
	switch v := v.(type) {
	case string:
		return path, c.checkText(s, v)
	case int64, float64, json.Number:
		return path, checkNumber(s, v)
	case []any:
		if s.MinItems != nil && len(v) < *s.MinItems {
			return path, fmt.Sprintf("must have at least %d items, has %d", *s.MinItems, len(v))
		}
		for i, e := range v {
			if s.Items == nil {
				break
			}
			if at, problem := c.check(s.Items, e, fmt.Sprintf("%s[%d]", path, i)); problem != "" {
				return at, problem
			}
		}
	case map[string]any:
		return c.checkObject(s, v, path)
	}
	return "", ""
}

func (c *checker) checkObject(s *schema.Schema, v map[string]any, path string) (at, problem string) {
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			return join(path, name), "is missing"
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		inside := s.Member(name)
		if inside == nil || inside.Never {
			continue // the decoder refuses what may not be there
		}
		if at, problem := c.check(inside, v[name], join(path, name)); problem != "" {
			return at, problem
		}
	}
	return "", ""
}

func (c *checker) checkText(s *schema.Schema, v string) string {
	n := utf8.RuneCountInString(v)
	switch {
	case s.MinLength != nil && n < *s.MinLength:
		return fmt.Sprintf("must have at least %d characters, has %d", *s.MinLength, n)
	case s.MaxLength != nil && n > *s.MaxLength:
		return fmt.Sprintf("must have at most %d characters, has %d", *s.MaxLength, n)
	case s.Pattern != "" && !c.matches(s, v):
		return fmt.Sprintf("must match %s, got %s", s.Pattern, text(v))
	}
	return ""
}

// matches tells whether the text fits; a pattern that Go cannot read fits all.
func (c *checker) matches(s *schema.Schema, v string) bool {
	known, ok := c.patterns.Load(s)
	if !ok {
		pattern, err := regexp.Compile(s.Pattern)
		if err != nil {
			return true
		}
		known, _ = c.patterns.LoadOrStore(s, pattern)
	}
	return known.(*regexp.Regexp).MatchString(v)
}

func checkNumber(s *schema.Schema, v any) string {
	var f float64
	switch v := v.(type) {
	case int64:
		f = float64(v)
	case float64:
		f = v
	case json.Number:
		f, _ = v.Float64() // out of range is infinite, which is far enough
	}
	switch {
	case s.Minimum != nil && f < *s.Minimum:
		return fmt.Sprintf("must be at least %v, got %s", *s.Minimum, text(v))
	case s.Maximum != nil && f > *s.Maximum:
		return fmt.Sprintf("must be at most %v, got %s", *s.Maximum, text(v))
	}
	return ""
}

// mistyped finds the first value of a wrong type: where, the type that is
// wanted there, and what is there instead. want is "" where there is none.
func mistyped(s *schema.Schema, v any, path string) (at, want, got string) {
	if v == nil {
		return "", "", ""
	}
	if len(s.Type) > 0 && !slices.ContainsFunc(s.Type, func(t string) bool { return hasType(v, t) }) {
		switch v.(type) {
		case int64, json.Number:
			got = "number"
		case float64:
			got = "number " + text(v)
		default:
			got = value.TypeName(v)
		}
		return path, strings.Join(s.Type, " or "), got
	}
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			if s.Items == nil {
				break
			}
			if at, want, got := mistyped(s.Items, e, fmt.Sprintf("%s[%d]", path, i)); want != "" {
				return at, want, got
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			inside := s.Member(name)
			if inside == nil {
				continue
			}
			if at, want, got := mistyped(inside, v[name], join(path, name)); want != "" {
				return at, want, got
			}
		}
	}
	return "", "", ""
}

// hasType tells whether Go's decoder takes a value for a JSON type.
func hasType(v any, want string) bool {
	have := value.TypeName(v)
	return have == want || want == "number" && have == "integer"
}

// unknown finds the first member that an object may not have, and what may
// have been meant, in words that follow.
func unknown(s *schema.Schema, v any, path string) (at, hint string) {
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			if s.Items == nil {
				break
			}
			if at, hint := unknown(s.Items, e, fmt.Sprintf("%s[%d]", path, i)); at != "" {
				return at, hint
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			inside := s.Member(name)
			if inside == nil {
				continue
			}
			if inside.Never {
				if hint = diag.Suggest(name, s.Properties.Names()); hint != "" {
					hint = "; " + hint
				}
				return join(path, name), hint
			}
			if at, hint := unknown(inside, v[name], join(path, name)); at != "" {
				return at, hint
			}
		}
	}
	return "", ""
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// text shows a value in a message.
func text(v any) string {
	raw, err := value.Encode(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(raw) > 80 {
		return strings.ToValidUTF8(string(raw[:80]), "") + "..."
	}
	return string(raw)
}

func list(all []any) string {
	words := make([]string, len(all))
	for i, v := range all {
		words[i] = text(v)
	}
	return strings.Join(words, ", ")
}

package subproc

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
)

// compatible reports why workflows that were checked with one manifest cannot be used
// with another version of the plugin. It compares schemas keyword by keyword and
// rejects changes that it cannot verify.
func compatible(old, now tea.Manifest) error {
	if old.Name != now.Name {
		return fmt.Errorf("it reports the name %q", now.Name)
	}
	if old.Dynamic != nil && (now.Dynamic == nil || *now.Dynamic != *old.Dynamic) {
		return errors.New("it declares its dynamic actions differently")
	}
	for _, a := range old.Actions {
		b := now.Find(a.Name)
		if b == nil {
			return fmt.Errorf("it has no action %s", a.Name)
		}
		if a.Idempotent && !b.Idempotent {
			return fmt.Errorf("%s is no longer idempotent", a.Name)
		}
		if a.Once && !b.Once {
			return fmt.Errorf("%s no longer has its effect at most once", a.Name)
		}
		if err := accepts(decoded(b.Params), decoded(a.Params), ""); err != nil {
			return fmt.Errorf("parameters of %s: %w", a.Name, err)
		}
		if err := provides(decoded(b.Result), decoded(a.Result), ""); err != nil {
			return fmt.Errorf("result of %s: %w", a.Name, err)
		}
	}
	return nil
}

// notes are the keywords that do not affect the validity of values.
var notes = []string{"title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly", "$schema", "$id"}

// decoded returns a schema as a value of the model; nil allows anything.
func decoded(s *schema.Schema) any {
	if s == nil {
		return nil
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	v, err := value.Decode(raw)
	if err != nil {
		return nil
	}
	return stripped(v)
}

// stripped removes the notes from a schema. The names of properties are not
// keywords.
func stripped(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, inner := range v {
			switch {
			case slices.Contains(notes, key) || strings.HasPrefix(key, "x-"):
			case key == "properties" || key == "$defs" || key == "definitions" || key == "patternProperties":
				out[key] = strippedEach(inner)
			case key == "enum" || key == "const" || key == "required":
				out[key] = inner
			default:
				out[key] = stripped(inner)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = stripped(v[i])
		}
		return out
	}
	return v
}

func strippedEach(v any) any {
	named, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for name, inner := range named {
		out[name] = stripped(inner)
	}
	return out
}

// accepts reports why schema now does not accept all values of schema old. path is the
// parameter that both describe.
func accepts(now, old any, path string) error {
	if reflect.DeepEqual(now, old) || allowsAnything(now) {
		return nil
	}
	n, isNow := now.(map[string]any)
	o, isOld := old.(map[string]any)
	if !isNow || !isOld {
		return fmt.Errorf("%sit accepts less than before", at(path))
	}
	for key, rule := range n {
		before, had := o[key]
		if had && reflect.DeepEqual(rule, before) {
			continue
		}
		switch key {
		case "type", "enum":
			if !had || !contains(rule, before) {
				return fmt.Errorf("%sits %s has changed from %v to %v", at(path), key, before, rule)
			}
		case "required":
			if added := missing(before, rule); added != nil {
				return fmt.Errorf("%sit requires %v, which was optional", at(path), added[0])
			}
		case "properties": // see acceptsEach
		case "items":
			if err := accepts(rule, before, path+"[]"); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%sits %s has changed from %v to %v", at(path), key, before, rule)
		}
	}
	return acceptsEach(n, o, path)
}

// acceptsEach compares the properties of two objects.
func acceptsEach(now, old map[string]any, path string) error {
	n, _ := now["properties"].(map[string]any)
	o, _ := old["properties"].(map[string]any)
	for name, rule := range n {
		before, had := o[name]
		if !had {
			continue // nothing used it
		}
		if err := accepts(rule, before, joinedPath(path, name)); err != nil {
			return err
		}
	}
	for name := range o {
		if _, has := n[name]; !has && !allowsAnything(now["additionalProperties"]) {
			return fmt.Errorf("%sit no longer accepts %s", at(path), name)
		}
	}
	return nil
}

// provides reports why result schema now does not guarantee what schema old did: the same
// properties with the same types. Additional properties are allowed.
func provides(now, old any, path string) error {
	if reflect.DeepEqual(now, old) || allowsAnything(old) {
		return nil
	}
	n, isNow := now.(map[string]any)
	o, isOld := old.(map[string]any)
	if !isNow || !isOld {
		return fmt.Errorf("%sit promises less than before", at(path))
	}
	for _, key := range []string{"type", "enum"} {
		if before, had := o[key]; had && (n[key] == nil || !contains(before, n[key])) {
			return fmt.Errorf("%sits %s has changed from %v to %v", at(path), key, before, n[key])
		}
	}
	if lost := missing(n["required"], o["required"]); lost != nil {
		return fmt.Errorf("%sit no longer always has %v", at(path), lost[0])
	}
	properties, _ := n["properties"].(map[string]any)
	before, _ := o["properties"].(map[string]any)
	for name, rule := range before {
		inner, has := properties[name]
		if !has {
			return fmt.Errorf("%sit no longer has %s", at(path), name)
		}
		if err := provides(inner, rule, joinedPath(path, name)); err != nil {
			return err
		}
	}
	if items, had := o["items"]; had {
		return provides(n["items"], items, path+"[]")
	}
	return nil
}

func allowsAnything(s any) bool {
	if m, ok := s.(map[string]any); ok {
		return len(m) == 0
	}
	return s == nil || s == true
}

// contains reports whether a keyword's list, or single value, has all elements of
// another.
func contains(whole, part any) bool { return missing(whole, part) == nil }

// missing returns the elements of part that whole does not have.
func missing(whole, part any) (lacks []any) {
	all := list(whole)
	if slices.Contains(all, any("number")) {
		all = append(slices.Clip(all), "integer")
	}
	for _, one := range list(part) {
		if !slices.ContainsFunc(all, func(v any) bool { return value.Equal(v, one) }) {
			lacks = append(lacks, one)
		}
	}
	return lacks
}

func list(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	}
	return []any{v}
}

func joinedPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func at(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

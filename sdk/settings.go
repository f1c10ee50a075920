package tea

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/jsonschema"
)

// Settings are the expanded settings of a workflow, by top-level key. They are
// shared and must not be changed.
type Settings map[string]json.RawMessage

// Decode stores the settings under key in the variable that v points to. Absent ones,
// even all of them, get the value of their default tag if v is a struct with such
// tags, as for parameters; otherwise v keeps its values. Settings that do not match
// the type and its tags are a validation_error that names every problem.
func (s Settings) Decode(key string, v any) error {
	compiled, err := schemaOf(reflect.TypeOf(v))
	if err != nil {
		return Errorf(InternalError, "settings.%s: %w", key, err)
	}
	var given any
	raw, isGiven := s[key]
	if isGiven {
		if given, err = value.Decode(raw); err != nil {
			return Errorf(ValidationError, "settings.%s: %w", key, err)
		}
	}
	if given == nil {
		if reflect.Indirect(reflect.ValueOf(v)).Kind() != reflect.Struct {
			return nil
		}
		given, _ = compiled.Complete(map[string]any{})
	} else {
		given, _ = compiled.Complete(given)
		problems := slices.DeleteFunc(compiled.Validate(given), func(p jsonschema.Problem) bool { return p.Kind == jsonschema.MissingMember })
		if len(problems) > 0 {
			return settingsError(key, problems)
		}
	}
	if err := value.Into(given, v); err != nil {
		return Errorf(ValidationError, "settings.%s: %w", key, err)
	}
	return nil
}

// schemas has the compiled schema of each type of settings, because bundles decode
// them at every start of a run.
var schemas sync.Map

func schemaOf(t reflect.Type) (*jsonschema.Schema, error) {
	if known, ok := schemas.Load(t); ok {
		return known.(*jsonschema.Schema), nil
	}
	compiled, err := jsonschema.Compile(schema.OfType(t))
	if err == nil {
		schemas.Store(t, compiled)
	}
	return compiled, err
}

// settingsError describes the problems. The given values can be secret and are not
// repeated.
func settingsError(key string, problems []jsonschema.Problem) error {
	texts := make([]string, len(problems))
	for i, p := range problems {
		if p.Kind == jsonschema.UnknownMember {
			texts[i] = fmt.Sprintf("settings.%s: unknown key %q", key, p.Path)
			if p.Hint != "" {
				texts[i] += "; " + p.Hint
			}
			continue
		}
		path := strings.TrimSuffix(key+"."+p.Path, ".")
		texts[i] = fmt.Sprintf("settings.%s: %s", path, p.Wanted)
	}
	return Errorf(ValidationError, "%s", strings.Join(texts, "; "))
}

// only returns the settings whose keys are declared.
func (s Settings) only(declared map[string]*schema.Schema) Settings {
	kept := Settings{}
	for key, raw := range s {
		if _, ok := declared[key]; ok {
			kept[key] = raw
		}
	}
	return kept
}

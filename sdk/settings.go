package tea

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/sdk/jsonschema"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Settings are the expanded settings of a workflow, by top-level key.
type Settings map[string]json.RawMessage

// Decode stores the settings under key in what v points to. What is absent,
// be it all of them, gets its default tag where v is a struct that has some,
// as parameters do, and stays as it was otherwise. Settings that do not fit
// the type and its tags are a validation_error that names every problem.
func (s Settings) Decode(key string, v any) error {
	compiled, err := jsonschema.Compile(schema.OfType(reflect.TypeOf(v)))
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

// settingsError words what does not fit. What is there may be secret and is not
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

// only keeps the settings whose keys stand in declared.
func (s Settings) only(declared map[string]*schema.Schema) Settings {
	kept := Settings{}
	for key, raw := range s {
		if _, ok := declared[key]; ok {
			kept[key] = raw
		}
	}
	return kept
}

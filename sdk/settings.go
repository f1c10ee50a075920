package tea

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Settings are the expanded settings of a workflow, by top-level key.
type Settings map[string]json.RawMessage

// Decode stores the settings under key in what v points to. What is absent,
// be it all of them, gets its default tag where v is a struct that has some,
// as parameters do, and stays as it was otherwise. Unknown members are refused.
func (s Settings) Decode(key string, v any) error {
	raw, ok := s[key]
	if !ok {
		raw = json.RawMessage("null")
	}
	dec := json.NewDecoder(bytes.NewReader(withDefaults(raw, reflect.TypeOf(v))))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return settingsError(key, raw, reflect.TypeOf(v), err)
	}
	return nil
}

// withDefaults puts the default tags of a pointer's struct in their places.
func withDefaults(raw json.RawMessage, into reflect.Type) json.RawMessage {
	if into.Kind() != reflect.Pointer || into.Elem().Kind() != reflect.Struct {
		return raw
	}
	given, err := value.Decode(raw)
	if err != nil {
		return raw // the decoder says it better
	}
	if given == nil {
		given = map[string]any{}
	}
	fill(schema.OfType(into), given, 1)
	filled, err := value.Encode(given)
	if err != nil {
		return raw
	}
	return filled
}

// settingsError words what is wrong for the author of the workflow, who does
// not know the type that it was decoded into.
func settingsError(key string, raw []byte, into reflect.Type, err error) error {
	given, bad := value.Decode(raw)
	if bad != nil {
		return Errorf(ValidationError, "settings.%s: %w", key, bad)
	}
	s := schema.OfType(into)
	if at, want, got := mistyped(s, given, key); want != "" {
		return Errorf(ValidationError, "settings.%s: expected %s, got %s", at, want, got)
	}
	if at, hint := unknown(s, given, ""); at != "" {
		return Errorf(ValidationError, "settings.%s has no key %q%s", key, at, hint)
	}
	return Errorf(ValidationError, "settings.%s: %w", key, err)
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

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

// Decode stores the settings under key in what v points to; an absent key
// leaves v as it was. Unknown members are refused.
func (s Settings) Decode(key string, v any) error {
	raw, ok := s[key]
	if !ok {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return settingsError(key, raw, reflect.TypeOf(v), err)
	}
	return nil
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

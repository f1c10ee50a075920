// Package filter compares metadata with what a search wants.
package filter

import (
	"strings"

	"github.com/the-edge-agent/tea/sdk/value"
)

// Matches says whether metadata, the JSON text of an object, has the wanted
// values. A field may be a path with dots; a wanted list means any of its values.
func Matches(metadata []byte, wanted map[string]any) bool {
	if len(wanted) == 0 {
		return true
	}
	decoded, err := value.Decode(metadata)
	object, ok := decoded.(map[string]any)
	if err != nil || !ok {
		return false
	}
	for field, want := range wanted {
		have, there := lookUpField(object, field)
		if !there || !fits(have, want) {
			return false
		}
	}
	return true
}

// lookUpField finds a member by its name or by a path with dots.
func lookUpField(object map[string]any, field string) (any, bool) {
	if v, ok := object[field]; ok {
		return v, true
	}
	name, rest, dotted := strings.Cut(field, ".")
	inner, ok := object[name].(map[string]any)
	if !dotted || !ok {
		return nil, false
	}
	return lookUpField(inner, rest)
}

// fits compares a value with the wanted one: a wanted list means any of its
// values, and a list is found by any of its own.
func fits(have, want any) bool {
	if value.Equal(have, want) {
		return true
	}
	if choices, ok := want.([]any); ok {
		for _, choice := range choices {
			if fits(have, choice) {
				return true
			}
		}
		return false
	}
	if items, ok := have.([]any); ok {
		for _, item := range items {
			if value.Equal(item, want) {
				return true
			}
		}
	}
	return false
}

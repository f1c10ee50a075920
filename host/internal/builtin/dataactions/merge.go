package dataactions

import (
	"maps"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// merge merges objects into a new one; later sources take precedence. It does
// not change the sources; the result shares parts of them.
func merge(sources []any, deep bool) (map[string]any, error) {
	merged := map[string]any{}
	for i, source := range sources {
		if source == nil {
			continue
		}
		object, ok := source.(map[string]any)
		if !ok {
			return nil, tea.Errorf(tea.ValidationError, "data.merge: sources[%d] must be an object, got %s", i, value.TypeName(source))
		}
		if deep {
			merged = deepMerge(merged, object)
		} else {
			maps.Copy(merged, object)
		}
	}
	return merged, nil
}

func deepMerge(under, over map[string]any) map[string]any {
	merged := maps.Clone(under)
	for k, v := range over {
		below, isObject := merged[k].(map[string]any)
		above, alsoObject := v.(map[string]any)
		if isObject && alsoObject {
			v = deepMerge(below, above)
		}
		merged[k] = v
	}
	return merged
}

package longterm

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
)

// Fields returns the searchable texts of a stored entry: its key and the leaves of its value
// and metadata, which are canonical JSON.
func Fields(key string, body []byte, metadata string) []fulltext.Field {
	all := []fulltext.Field{{Name: "key", Text: key}}
	// The metadata come first because only the first words of a very long value are
	// indexed, and filters need the words of the metadata.
	if metadata != "" {
		if object, err := value.Decode([]byte(metadata)); err == nil { // else it is damaged
			all = leaves(all, "metadata", object)
		}
	}
	v, _ := value.Decode(body) // a damaged value has no texts
	return leaves(all, "value", v)
}

func leaves(all []fulltext.Field, name string, v any) []fulltext.Field {
	switch v := v.(type) {
	case string:
		return append(all, fulltext.Field{Name: name, Text: v})
	case []any:
		for _, item := range v {
			all = leaves(all, name, item)
		}
	case map[string]any:
		names := make([]string, 0, len(v))
		for member := range v {
			names = append(names, member)
		}
		sort.Strings(names)
		for _, member := range names {
			all = leaves(all, name, v[member])
		}
	case int64:
		return append(all, fulltext.Field{Name: name, Text: strconv.FormatInt(v, 10)})
	case float64, fmt.Stringer:
		if text, err := value.Encode(v); err == nil {
			return append(all, fulltext.Field{Name: name, Text: strings.Trim(string(text), `"`)})
		}
	}
	return all
}

// exactBelow is the magnitude below which an integer and an equal float have the same
// digits.
const exactBelow = 1_000_000

// Required returns texts that every entry that matches the filter contains, since the
// values of metadata are indexed. The filter is still evaluated.
func Required(wanted filter.Filter) (texts []string) {
	for _, c := range wanted {
		want, _ := c.Value()
		switch want := want.(type) {
		case string:
			texts = append(texts, want)
		case int64:
			if -exactBelow < want && want < exactBelow {
				texts = append(texts, strconv.FormatInt(want, 10))
			}
		}
	}
	return texts
}

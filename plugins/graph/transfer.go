package graph

import (
	"path"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
	"github.com/the-edge-agent/tea/plugins/graph/internal/transfer"
)

func transferActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("graph.export", "Writes the graph, or a part of it, to a file.", (*Graph).Export, tea.Idempotent(), tea.WritesFiles("files")),
		tea.NewMethod("graph.import", "Stores the entities and relations of a file.", (*Graph).Import, tea.Idempotent()),
	}
}

// maxData is the maximum size of an export without a file.
const maxData = 32 << 20

// formats maps file extensions to formats.
var formats = map[string]transfer.Format{".jsonl": transfer.JSONL, ".ndjson": transfer.JSONL, ".graphml": transfer.GraphML, ".xml": transfer.GraphML, ".json": transfer.Cytoscape, ".cyjs": transfer.Cytoscape}

// tableFormats maps the extensions of files that an import reads to their formats. An
// export writes a folder.
var tableFormats = map[string]string{".csv": string(transfer.CSV), ".parquet": string(transfer.Parquet)}

// formatOf returns the format of a parameter or of a file extension. supported are the
// formats of the action, for a message.
func formatOf(format, file, supported string) (transfer.Format, error) {
	if format != "" {
		return transfer.Format(format), nil
	}
	if file == "" {
		return transfer.JSONL, nil
	}
	f, ok := formats[strings.ToLower(path.Ext(file))]
	if !ok {
		return "", tea.Errorf(tea.ValidationError, "the file name %q does not end like a known format; set format to %s", file, supported)
	}
	return f, nil
}

// readableFacts replaces the instants in the facts of an entity with times, and an
// unknown start with "".
func readableFacts(facts string) (string, error) {
	return replaceInstants(facts, func(at any) (any, error) {
		us, ok := at.(int64)
		if !ok {
			return at, nil
		}
		text := store.FormatInstant(us)
		if back, err := store.ParseInstant(text, us); err != nil || back != us {
			return at, nil // a year that a time cannot have
		}
		return text, nil
	})
}

// storedFacts is the inverse of readableFacts. It also accepts instants.
func storedFacts(facts string) (string, error) {
	return replaceInstants(facts, func(at any) (any, error) {
		text, ok := at.(string)
		if !ok {
			return at, nil
		}
		return store.ParseInstant(text, store.Always)
	})
}

// replaceInstants replaces the members from and to in the text of a [history].
func replaceInstants(facts string, replace func(any) (any, error)) (string, error) {
	if facts == "" {
		return "", nil
	}
	decoded, err := value.Decode([]byte(facts))
	if err != nil {
		return "", err
	}
	all, ok := decoded.(map[string]any)
	if !ok {
		return facts, nil
	}
	var places []any
	if former, ok := all["former"].([]any); ok {
		places = former
	}
	if since, ok := all["since"].(map[string]any); ok {
		for _, s := range since {
			places = append(places, s)
		}
	}
	for _, place := range places {
		object, _ := place.(map[string]any)
		for _, name := range []string{"from", "to"} {
			if at, ok := object[name]; ok {
				if object[name], err = replace(at); err != nil {
					return "", err
				}
			}
		}
	}
	text, err := value.Encode(all)
	return string(text), err
}

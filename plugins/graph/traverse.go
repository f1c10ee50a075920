package graph

import (
	"github.com/the-edge-agent/tea/sdk/schema"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// Directions is the direction in which relations are followed.
type Directions string

// JSONSchema lists the directions.
func (Directions) JSONSchema() *schema.Schema {
	return &schema.Schema{Type: schema.Types{"string"}, Enum: []any{"out", "in", "both"}}
}

func (d Directions) store() store.Direction {
	switch d {
	case "out":
		return store.Out
	case "in":
		return store.In
	}
	return store.Both
}

//go:build cozo && cgo

package cozo

import (
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// relations are the stored relations of a database and the scripts that create
// them, in order. Queries of workflows name entity, relation and their columns.
//
// word maps words to entities; relation:by_target has the columns that a traversal
// reads. The column exact has the JSON text of properties with numbers that the
// engine's JSON does not preserve.
var relations = []struct{ name, create string }{
	{"meta", `:create meta {name: String => value: Any}`},
	{"namespace", `:create namespace {namespace: String}`},
	{"entity", `:create entity {namespace: String, id: String => type: String, properties: Json, embedding: Any?, created_at: Int,
		updated_at: Int, source: String, text: String, facts: String, exact: String?, words: [String]}`},
	{"word", `:create word {namespace: String, word: String, id: String}`},
	{"relation", `:create relation {namespace: String, from_id: String, rel_type: String, to_id: String, valid_from: Int => valid_to: Int,
		weight: Float, properties: Json?, created_at: Int, updated_at: Int, source: String, exact: String?}`},
	{"relation:by_target", `::index create relation:by_target {namespace, to_id, rel_type, from_id, valid_from, valid_to, weight}`},
}

// prepare creates missing relations. If create is not set, they are an error.
func (db *DB) prepare(create bool) error {
	var names []string
	err := db.engine.run("::relations", &writer{}, func(r *reader) error {
		t := r.open()
		for range t.rows {
			for column := range t.columns {
				v, err := r.any()
				if err != nil {
					return err
				}
				if name, ok := v.(string); ok && column == 0 {
					names = append(names, name)
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, relation := range relations {
		if slices.Contains(names, relation.name) {
			continue
		}
		if !create {
			return store.Unusable(tea.InternalError, "restore a backup with graph.restore", "the graph's database %s is damaged: its table %s is missing", db.path, relation.name)
		}
		if err := db.engine.run(relation.create, &writer{}, nil); err != nil {
			return err
		}
	}
	return nil
}

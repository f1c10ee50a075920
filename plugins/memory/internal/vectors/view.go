package vectors

import "github.com/the-edge-agent/tea/plugins/memory/internal/store"

// View is the table vectors for queries from outside, without the numbers of
// the vectors: see Query.
func View(dialect store.Dialect) store.View {
	metadata := "v.metadata"
	if dialect == store.DuckDB {
		metadata = "CAST(v.metadata AS JSON)"
	}
	return store.View{
		Name:    "vectors",
		Columns: []store.Column{{Name: "collection"}, {Name: "id"}, {Name: "text"}, {Name: "metadata", Type: store.JSON}, {Name: "dimension"}},
		Query:   "SELECT v.collection, v.name, v.text, " + metadata + ", c.dimension FROM main.vectors AS v JOIN main.vector_collections AS c ON c.name = v.collection",
	}
}

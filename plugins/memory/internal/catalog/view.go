package catalog

import (
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

// Views are the tables of the catalog for queries from outside.
func Views(dialect store.Dialect) []store.View {
	return []store.View{
		documents.View(dialect, "catalog_tables", tableKind, []documents.Shown{
			{Name: "name", Field: "name"},
			{Name: "description", Field: "description"},
			{Name: "format", Field: "format"},
			{Name: "location", Field: "location"},
			{Name: "schema", Field: "schema", As: documents.Object},
			{Name: "metadata", Field: "metadata", As: documents.Object},
			{Name: "managed", Field: "managed", As: documents.Bool},
			{Name: "created_at", Field: "created_at", As: documents.Instant},
			{Name: "updated_at", Field: "updated_at", As: documents.Instant},
		}),
		documents.View(dialect, "catalog_files", fileKind, []documents.Shown{
			{Name: "table_name", Field: "table"},
			{Name: "path", Field: "path"},
			{Name: "content_hash", Field: "content_hash"},
			{Name: "size", Field: "size", As: documents.Number},
			{Name: "row_count", Field: "row_count", As: documents.Number},
			{Name: "format", Field: "format"},
			{Name: "metadata", Field: "metadata", As: documents.Object},
			{Name: "tracked_at", Field: "tracked_at", As: documents.Instant},
		}),
	}
}

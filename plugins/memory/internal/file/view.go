package file

import (
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

// View is the table files for queries from outside. What is in the files is
// not there: see Search and Grep.
func View(dialect store.Dialect) store.View {
	return documents.View(dialect, "files", Kind, []documents.Shown{
		{Name: "path"},
		{Name: "type", Field: "type"},
		{Name: "size", Field: "size", As: documents.Number},
		{Name: "is_text", Field: "text", As: documents.Bool},
		{Name: "lines", Field: "lines", As: documents.Number},
		{Name: "tokens", Field: "tokens", As: documents.Number},
		{Name: "content_hash", Field: "hash"},
		{Name: "metadata", Field: "metadata", As: documents.Object},
		{Name: "session_id", Field: "session_id"},
		{Name: "archived", As: documents.Bool, Is: "id LIKE '" + ArchivePrefix + SessionPrefix + "%'"},
		{Name: "created_at", Field: "created_at", As: documents.Instant},
		{Name: "updated_at", Field: "updated_at", As: documents.Instant},
	})
}

package session

import (
	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

// View is the table sessions for queries of workflows. It shows a session that
// has expired as archived.
func (s *Sessions) View(dialect store.Dialect) store.View {
	field := func(name string) string { return documents.Field(dialect, name) }
	over := field("status") + " = '" + string(Active) + "' AND " + field("expires_at") + " <= '" + clock.Text(s.o.Clock.Now()) + "'"
	return documents.View(dialect, "sessions", Kind, []documents.Shown{
		{Name: "session_id"},
		{Name: "user_id", Field: "user_id"},
		{Name: "status", Is: "CASE WHEN " + over + " THEN '" + string(Archived) + "' ELSE " + field("status") + " END"},
		{Name: "reason", Is: "CASE WHEN " + over + " THEN '" + Expired + "' ELSE " + field("reason") + " END"},
		{Name: "metadata", Field: "metadata", As: documents.Object},
		{Name: "created_at", Field: "created_at", As: documents.Instant},
		{Name: "updated_at", Field: "updated_at", As: documents.Instant},
		{Name: "expires_at", Field: "expires_at", As: documents.Instant},
		{Name: "archived_at", Field: "archived_at", As: documents.Instant},
	})
}

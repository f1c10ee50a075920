package sqlite

import (
	"context"
	"strings"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// verifications return a row for each defect. SQLite compares the tables with their
// indexes; the other queries find rows that joins would omit, and values that Apply
// never writes.
var verifications = []string{
	"SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok' LIMIT 1",
	`SELECT 'the entity ' || json_quote(n.id) || ' is incomplete' FROM node n LEFT JOIN body b ON b.pk = n.pk LEFT JOIN kind k ON k.pk = n.kind
		LEFT JOIN embedding e ON e.pk = n.pk LEFT JOIN meta m ON m.name = 'dimension' LEFT JOIN namespace s ON s.pk = n.namespace
		WHERE s.pk IS NULL OR n.kind IS NOT NULL AND (k.pk IS NULL OR b.pk IS NULL OR NOT json_valid(b.properties) OR b.facts <> '' AND NOT json_valid(b.facts)
		OR length(e.vector) <> 4 * m.value) LIMIT 1`,
	`SELECT 'a relation is incomplete' FROM relation r LEFT JOIN node s ON s.pk = r.source_pk LEFT JOIN node t ON t.pk = r.target_pk LEFT JOIN kind k ON k.pk = r.kind
		WHERE s.pk IS NULL OR t.pk IS NULL OR k.pk IS NULL OR NOT json_valid(r.properties) LIMIT 1`,
}

// Verify implements [store.Verifier].
func (db *DB) Verify(ctx context.Context) error {
	done, err := db.use()
	if err != nil {
		return err
	}
	defer done()
	for _, query := range verifications {
		var found string
		if err := scan(ctx, db.read, query, nil, func() error { return store.Damaged("%s: %s", databaseFile, strings.Join(strings.Fields(found), " ")) }, &found); err != nil {
			return err
		}
	}
	return nil
}

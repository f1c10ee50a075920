package sqlite

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// Search implements [store.Store].
func (db *DB) Search(ctx context.Context, namespace string, q store.TextQuery) ([]string, error) {
	ns, done, err := db.reading(namespace)
	if done == nil {
		return nil, err
	}
	defer done()
	pks, err := store.Candidates(q, func(words []string, limit int) ([]int64, error) { return db.withWords(ctx, ns, q.Types, words, limit) })
	if err != nil {
		return nil, err
	}
	return db.idsOf(ctx, pks)
}

// withWords returns the first entities that have all words.
func (db *DB) withWords(ctx context.Context, ns int64, types, words []string, limit int) ([]int64, error) {
	match := `"` + namespaceWord(ns) + `" AND "` + strings.Join(words, `" AND "`) + `"`
	query, args := "SELECT rowid FROM word WHERE word MATCH ? LIMIT ?", []any{match}
	if kinds := db.names.known(types); kinds != nil {
		query = "SELECT w.rowid AS rowid FROM word w CROSS JOIN node n ON n.pk = w.rowid WHERE w.word MATCH ? AND n.kind IN (SELECT value FROM json_each(?)) LIMIT ?"
		args = append(args, list(kinds))
	}
	var found []int64
	var text []byte
	// A single row with all of them is several times faster than a row for each.
	err := scan(ctx, db.read, "SELECT json_group_array(rowid) FROM ("+query+")", append(args, limit), func() error { return json.Unmarshal(text, &found) }, &text)
	return found, err
}

// idsOf returns the IDs of nodes, in their order.
func (db *DB) idsOf(ctx context.Context, pks []int64) ([]string, error) {
	var found []string
	var id string
	err := scan(ctx, db.read, "SELECT n.id FROM json_each(?) j CROSS JOIN node n ON n.pk = j.value ORDER BY j.key", []any{list(pks)}, func() error { found = append(found, id); return nil }, &id)
	return found, err
}

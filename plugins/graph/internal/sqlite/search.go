package sqlite

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// maxCommon is the number of entities that are found by common words alone.
// Ranking all of them would take longer than it is worth.
const maxCommon = 200

// Search is [store.Store.Search]. A word that more than q.Limit entities have is
// common: it says little. The entities with the other words come first, those
// with most of them before others, and then some with all common words.
func (db *DB) Search(ctx context.Context, namespace string, q store.TextQuery) ([]string, error) {
	ns, done, err := db.reading(namespace)
	if done == nil {
		return nil, err
	}
	defer done()
	counts := map[int64]int{}
	var common []string
	for _, word := range q.Words {
		pks, err := db.having(ctx, ns, q.Types, []string{word}, q.Limit+1)
		if err != nil {
			return nil, err
		}
		if len(pks) > q.Limit {
			common = append(common, word)
			continue
		}
		for _, pk := range pks {
			counts[pk]++
		}
	}
	found := slices.SortedFunc(maps.Keys(counts), func(a, b int64) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	for n := len(common); n > 0 && len(found) < min(maxCommon, q.Limit); n /= 2 {
		pks, err := db.having(ctx, ns, q.Types, common[:n], min(maxCommon, q.Limit))
		if err != nil {
			return nil, err
		}
		for _, pk := range pks {
			if counts[pk] == 0 {
				counts[pk]++
				found = append(found, pk)
			}
		}
	}
	return db.idsOf(ctx, found[:min(len(found), q.Limit)])
}

// having returns the first entities that have all words.
func (db *DB) having(ctx context.Context, ns int64, types, words []string, limit int) ([]int64, error) {
	match := `"` + namespaceWord(ns) + `" AND "` + strings.Join(words, `" AND "`) + `"`
	query, args := "SELECT rowid FROM word WHERE word MATCH ? LIMIT ?", []any{match}
	if kinds := db.names.known(types); kinds != nil {
		query = "SELECT w.rowid FROM word w CROSS JOIN node n ON n.pk = w.rowid WHERE w.word MATCH ? AND n.kind IN (SELECT value FROM json_each(?)) LIMIT ?"
		args = append(args, list(kinds))
	}
	var found []int64
	var pk int64
	err := scan(ctx, db.read, query, append(args, limit), func() error { found = append(found, pk); return nil }, &pk)
	return found, err
}

// idsOf returns the IDs of nodes, in their order.
func (db *DB) idsOf(ctx context.Context, pks []int64) ([]string, error) {
	var found []string
	var id string
	err := scan(ctx, db.read, "SELECT n.id FROM json_each(?) j CROSS JOIN node n ON n.pk = j.value ORDER BY j.key", []any{list(pks)}, func() error { found = append(found, id); return nil }, &id)
	return found, err
}

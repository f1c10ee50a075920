package longterm

import (
	"context"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// maxBelow is the number of entries with a prefix from which hits are not rare.
const maxBelow = 4096

// Matching returns the ids of the entries whose metadata match the filter, sorted.
func (m *Memory) Matching(ctx context.Context, wanted filter.Filter) ([]int64, error) {
	ids, err := m.fields.Matching(ctx, wanted, func(ctx context.Context) (store.Rows, error) {
		return m.o.Engine.Query(ctx, "SELECT id, metadata FROM ltm")
	})
	slices.Sort(ids)
	return ids, err
}

// Below returns the ids of the entries with a prefix, sorted. It returns nil if there are
// so many entries that hits are not rare.
func (m *Memory) Below(ctx context.Context, space, prefix string) ([]int64, error) {
	rows, err := m.o.Engine.Query(ctx, "SELECT id, key FROM ltm WHERE key >= ? ORDER BY key LIMIT ?", rowKey(space, prefix), maxBelow)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	ids := []int64{}
	for rows.Next() {
		var id int64
		var row string
		if err := rows.Scan(&id, &row); err != nil {
			return nil, err
		}
		if namespace, key := splitRowKey(row); namespace != space || !strings.HasPrefix(key, prefix) {
			break
		}
		ids = append(ids, id)
	}
	if len(ids) == maxBelow {
		return nil, rows.Err()
	}
	slices.Sort(ids)
	return ids, rows.Err()
}

package memory

import (
	"context"

	"github.com/the-edge-agent/tea/plugins/memory/internal/syncing"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// syncedTables are the tables of a memory for memory.sync.
type syncedTables struct {
	syncing.Rows
	all archivedTables
}

// syncedTables returns the tables of a memory, nil if it has none that synchronise.
func (f *folder) syncedTables() syncing.Tables {
	if rows, ok := f.tables.(syncing.Rows); ok {
		return syncedTables{rows, archivedTables{f}}
	}
	return nil
}

func (t syncedTables) Definitions(ctx context.Context) (all []store.NewTable, err error) {
	found, err := t.all.Tables(ctx)
	for _, one := range found {
		all = append(all, store.NewTable{Name: one.Name, Description: one.Description, Schema: one.Schema, PrimaryKey: one.PrimaryKey})
	}
	return all, err
}

// Create creates a table, unless the same one exists.
func (t syncedTables) Create(ctx context.Context, n store.NewTable) error {
	_, err := t.all.f.tables.Create(ctx, n)
	return err
}

package catalog

import (
	"context"
	"errors"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

// keptSnapshots is the number of snapshots of a managed table that are kept.
const keptSnapshots = 20

// CreateIn adds a managed table in a transaction. If the name exists the error is
// a validation_error.
func (c *Catalog) CreateIn(ctx context.Context, tx store.Tx, t Table) error {
	id, err := tableID(t.Name)
	if err != nil {
		return err
	}
	t.Managed, t.CreatedAt = true, c.now()
	t.UpdatedAt = t.CreatedAt
	change, err := put(tableKind, id, 0, t)
	if err != nil {
		return err
	}
	err = c.docs.ApplyIn(ctx, tx, change)
	if errors.Is(err, store.ErrConflict) {
		return tea.Errorf(tea.ValidationError, "the catalog already has a table %q from catalog.register_table; choose another name", t.Name)
	}
	return err
}

// FilesIn returns all files of a table, by path. from is a transaction, or nil
// for the committed files.
func (c *Catalog) FilesIn(ctx context.Context, from documents.Reader, table string) ([]File, error) {
	docs, err := c.docs.Below(ctx, from, fileKind, strings.ToLower(table))
	if err != nil {
		return nil, err
	}
	return decodeAll[File](docs)
}

// SwapIn adds and removes files of a managed table in a transaction.
func (c *Catalog) SwapIn(ctx context.Context, tx store.Tx, added, removed []File) error {
	var changes []store.Change
	for _, f := range removed {
		changes = append(changes, store.Change{Kind: fileKind, ID: f.id()})
	}
	for _, f := range added {
		f.TrackedAt = c.now()
		change, err := put(fileKind, f.id(), 0, f)
		if err != nil {
			return err
		}
		changes = append(changes, change)
	}
	return c.docs.ApplyIn(ctx, tx, changes...)
}

// SnapshotIn adds a snapshot of a managed table in a transaction, writes the
// version to the table's entry, and removes old snapshots. last is the result of
// LastSnapshot.
func (c *Catalog) SnapshotIn(ctx context.Context, tx store.Tx, t Table, files []File, last *Snapshot) (Snapshot, error) {
	id := strings.ToLower(t.Name)
	s := Snapshot{Table: id, Files: refs(files), Version: t.Version, CreatedAt: c.now()}
	s.follow(last)
	snapshot, err := put(snapshotKind, s.ID, 0, s)
	if err != nil {
		return Snapshot{}, err
	}
	t.UpdatedAt = s.CreatedAt
	table, err := put(tableKind, id, 0, t)
	if err != nil {
		return Snapshot{}, err
	}
	table.If = 0
	changes := []store.Change{snapshot, table}
	if old := s.Number - keptSnapshots; old > 0 {
		changes = append(changes, store.Change{Kind: snapshotKind, ID: snapshotID(id, old)})
	}
	return s, c.docs.ApplyIn(ctx, tx, changes...)
}

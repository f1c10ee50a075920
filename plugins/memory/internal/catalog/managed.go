package catalog

import (
	"context"
	"errors"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

// keptSnapshots is how many snapshots of a managed table stay.
const keptSnapshots = 20

// CreateIn adds a managed table inside of a transaction. A name that is taken
// gives a validation_error.
func (c *Catalog) CreateIn(ctx context.Context, tx store.Tx, t Table) error {
	id, err := tableID(t.Name)
	if err != nil {
		return err
	}
	t.Managed, t.CreatedAt = true, c.clock.Now()
	t.UpdatedAt = t.CreatedAt
	change, err := put(tableKind, id, 0, t)
	if err != nil {
		return err
	}
	err = c.docs.ApplyIn(ctx, tx, change)
	if errors.Is(err, store.ErrConflict) {
		return tea.Errorf(tea.ValidationError, "the catalog has a table %q already, which data.create_table has not made; choose another name", t.Name)
	}
	return err
}

// FilesIn are all files of a table as a transaction sees them; from may be
// nil for what was committed.
func (c *Catalog) FilesIn(ctx context.Context, from documents.Reader, table string) ([]File, error) {
	docs, err := c.docs.Below(ctx, from, fileKind, strings.ToLower(table))
	if err != nil {
		return nil, err
	}
	return decodeAll[File](docs)
}

// SwapIn adds and removes files of a managed table inside of a transaction.
func (c *Catalog) SwapIn(ctx context.Context, tx store.Tx, added, removed []File) error {
	var changes []store.Change
	for _, f := range removed {
		changes = append(changes, store.Change{Kind: fileKind, ID: f.id()})
	}
	for _, f := range added {
		f.TrackedAt = c.clock.Now()
		change, err := put(fileKind, f.id(), 0, f)
		if err != nil {
			return err
		}
		changes = append(changes, change)
	}
	return c.docs.ApplyIn(ctx, tx, changes...)
}

// SnapshotIn adds a snapshot of a managed table inside of a transaction,
// writes the version into the table's entry, and forgets old snapshots. Last
// is what LastSnapshot gave.
func (c *Catalog) SnapshotIn(ctx context.Context, tx store.Tx, t Table, files []File, last *Snapshot) (Snapshot, error) {
	id := strings.ToLower(t.Name)
	s := Snapshot{Table: id, Files: refs(files), Version: t.Version, CreatedAt: c.clock.Now()}
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

// LastSnapshot is the last snapshot of a managed table, nil where there is
// none. Whoever is about to add one lets nobody else do so meanwhile.
func (c *Catalog) LastSnapshot(ctx context.Context, table string) (*Snapshot, error) {
	return c.lastSnapshot(ctx, strings.ToLower(table))
}

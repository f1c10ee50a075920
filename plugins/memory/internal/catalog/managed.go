package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// keptSnapshots is the number of snapshots of a managed table that are kept.
const keptSnapshots = 20

// Documents are documents that also change in transactions of the embedded database.
type Documents interface {
	store.MetadataStore
	// ApplyIn is Apply in a transaction of the caller, which commits the changes.
	ApplyIn(ctx context.Context, tx store.Tx, changes ...store.Change) error
	// Below returns the documents of a kind whose ids begin with the folder and a slash, in
	// the order of their ids. It reads committed documents if from is nil.
	Below(ctx context.Context, from documents.Reader, kind, folder string) ([]store.Document, error)
}

// Managed is a catalog in an embedded database, whose entries also change in
// transactions of data.* tables.
type Managed struct {
	*Catalog
	docs Documents
}

// NewManaged creates a catalog. The documents belong to the caller.
func NewManaged(docs Documents, clock *clock.Clock) *Managed {
	return &Managed{New(docs, clock), docs}
}

// CreateIn adds a managed table in a transaction. If the name exists the error is
// a validation_error.
func (c *Managed) CreateIn(ctx context.Context, tx store.Tx, t Table) error {
	change, err := c.managed(t)
	if err != nil {
		return err
	}
	err = c.docs.ApplyIn(ctx, tx, change)
	if errors.Is(err, store.ErrConflict) {
		return Registered(t.Name)
	}
	return err
}

// Registered returns the error of creating a managed table whose name is used.
func Registered(name string) error {
	return tea.Errorf(tea.ValidationError, "the catalog already has a table %q from catalog.register_table; choose another name", name)
}

// managed returns the change that adds a managed table.
func (c *Catalog) managed(t Table) (store.Change, error) {
	id, err := tableID(t.Name)
	if err != nil {
		return store.Change{}, err
	}
	t.Managed, t.CreatedAt = true, c.now()
	t.UpdatedAt = t.CreatedAt
	return put(tableKind, id, 0, t)
}

// CreateManaged adds a managed table. If the name exists the error wraps
// [store.ErrConflict].
func (c *Catalog) CreateManaged(ctx context.Context, t Table) error {
	change, err := c.managed(t)
	if err != nil {
		return err
	}
	return c.docs.Apply(ctx, change)
}

// SnapshotManaged is SnapshotIn for a store that runs its transactions itself. Of
// two concurrent calls, the second one fails with an error that wraps
// [store.ErrConflict].
func (c *Catalog) SnapshotManaged(ctx context.Context, t Table, last *Snapshot) (Snapshot, error) {
	s, changes, err := c.snapshotOf(t, nil, last)
	if err != nil {
		return Snapshot{}, err
	}
	return s, c.docs.Apply(ctx, changes...)
}

// FilesIn returns all files of a table, by path. from is a transaction, or nil
// for the committed files.
func (c *Managed) FilesIn(ctx context.Context, from documents.Reader, table string) ([]File, error) {
	docs, err := c.docs.Below(ctx, from, fileKind, strings.ToLower(table))
	if err != nil {
		return nil, err
	}
	return decodeAll[File](docs)
}

// SwapIn adds and removes files of a managed table in a transaction.
func (c *Managed) SwapIn(ctx context.Context, tx store.Tx, added, removed []File) error {
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
func (c *Managed) SnapshotIn(ctx context.Context, tx store.Tx, t Table, files []File, last *Snapshot) (Snapshot, error) {
	s, changes, err := c.snapshotOf(t, files, last)
	if err != nil {
		return Snapshot{}, err
	}
	return s, c.docs.ApplyIn(ctx, tx, changes...)
}

// snapshotOf returns a snapshot and the changes that add it.
func (c *Catalog) snapshotOf(t Table, files []File, last *Snapshot) (Snapshot, []store.Change, error) {
	id := strings.ToLower(t.Name)
	s := Snapshot{Table: id, Files: refs(files), Version: t.Version, CreatedAt: c.now()}
	s.follow(last)
	snapshot, err := put(snapshotKind, s.ID, 0, s)
	if err != nil {
		return Snapshot{}, nil, err
	}
	t.UpdatedAt = s.CreatedAt
	table, err := put(tableKind, id, 0, t)
	if err != nil {
		return Snapshot{}, nil, err
	}
	table.If = 0
	changes := []store.Change{snapshot, table}
	if old := s.Number - keptSnapshots; old > 0 {
		changes = append(changes, store.Change{Kind: snapshotKind, ID: snapshotID(id, old)})
	}
	return s, changes, nil
}

// ManagedTables returns the ids of the managed tables.
func (c *Catalog) ManagedTables(ctx context.Context) (map[string]bool, error) {
	docs, err := c.docs.Query(ctx, store.DocumentQuery{Kind: tableKind, Limit: math.MaxInt32, Where: []store.Condition{{Field: "managed", Op: store.Eq, Value: true}}})
	managed := make(map[string]bool, len(docs))
	for _, d := range docs {
		managed[d.ID] = true
	}
	return managed, err
}

// TableOf returns the id of the table that a document of the catalog belongs to,
// false for other documents.
func TableOf(d store.Document) (id string, ok bool) {
	switch d.Kind {
	case tableKind:
		return d.ID, true
	case fileKind, snapshotKind:
		var of struct {
			Table string `json:"table"`
		}
		_ = json.Unmarshal(d.Body, &of) // a damaged document has no table
		return of.Table, true
	}
	return "", false
}

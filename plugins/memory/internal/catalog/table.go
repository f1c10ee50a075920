package catalog

import (
	"context"
	"encoding/json"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Table is an entry of the catalog.
type Table struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Format      string          `json:"format,omitempty"`
	Location    string          `json:"location,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	PrimaryKey  []string        `json:"primary_key,omitempty"`
	PartitionBy []string        `json:"partition_by,omitempty"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	// Managed reports whether the table belongs to package tabular.
	Managed bool `json:"managed,omitempty"`
	// Version is the last change of a managed table's rows that the last
	// consolidation included.
	Version   int64         `json:"version,omitempty"`
	CreatedAt clock.Instant `json:"created_at"`
	UpdatedAt clock.Instant `json:"updated_at"`
	// Damaged reports whether the document is damaged; only Name is set.
	Damaged bool `json:"-"`
}

// Register writes or replaces a table's entry and reports whether it is new. A
// managed table is a validation_error.
func (c *Catalog) Register(ctx context.Context, t Table) (registered Table, created bool, err error) {
	id, err := tableID(t.Name)
	if err != nil {
		return Table{}, false, err
	}
	if err := checkObject("metadata", &t.Metadata); err != nil {
		return Table{}, false, err
	}
	err = change(ctx, func() error {
		var have Table
		version, err := c.get(ctx, tableKind, id, &have)
		if err != nil {
			return err
		}
		if have.Managed {
			return managed(have)
		}
		t.UpdatedAt = c.now()
		if t.CreatedAt = have.CreatedAt; version == 0 {
			t.CreatedAt = t.UpdatedAt
		}
		created = version == 0
		change, err := put(tableKind, id, version, t)
		if err != nil {
			return err
		}
		return c.docs.Apply(ctx, change)
	})
	return t, created, err
}

func managed(t Table) error {
	return tea.Errorf(tea.ValidationError, "table %q was created by data.create_table; only the data.* actions change it", t.Name)
}

// Table returns the entry of a table, or a not_found error.
func (c *Catalog) Table(ctx context.Context, name string) (t Table, err error) {
	id, err := tableID(name)
	if err != nil {
		return Table{}, err
	}
	version, err := c.get(ctx, tableKind, id, &t)
	if err == nil && version == 0 {
		err = c.missingTable(ctx, name)
	}
	return t, err
}

// open returns the id of a table for a change, or a validation_error for a
// managed table.
func (c *Catalog) open(ctx context.Context, name string) (id string, err error) {
	t, err := c.Table(ctx, name)
	if err != nil {
		return "", err
	}
	if t.Managed {
		return "", managed(t)
	}
	return tableID(name)
}

// TableQuery selects tables.
type TableQuery struct {
	Prefix string
	// Managed restricts the list to managed tables.
	Managed bool
	Page
}

// Tables returns a page of the tables in the order of their names, and the
// number of tables in all pages.
func (c *Catalog) Tables(ctx context.Context, q TableQuery) ([]Table, int, error) {
	query := store.DocumentQuery{Kind: tableKind, OrderBy: "id"}
	if q.Prefix != "" {
		query.Where = append(query.Where, store.Condition{Field: "id", Op: store.Prefix, Value: strings.ToLower(q.Prefix)})
	}
	if q.Managed {
		query.Where = append(query.Where, store.Condition{Field: "managed", Op: store.Eq, Value: true})
	}
	var after []store.Condition
	if q.After != "" {
		after = append(after, store.Condition{Field: "id", Op: store.Gt, Value: strings.ToLower(q.After)})
	}
	return page(ctx, c, query, q.Limit, func(id string) Table { return Table{Name: id, Damaged: true} }, after...)
}

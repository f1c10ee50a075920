package memory

import (
	"context"
	"encoding/json"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
)

func catalogActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("catalog.register_table", "Adds or replaces the entry of a table.", writes((*Memory).CatalogRegisterTable), tea.Idempotent()),
		tea.NewMethod("catalog.get_table", "Describes a table.", (*Memory).CatalogGetTable, tea.Idempotent(), tea.Reads()),
		tea.NewMethod("catalog.list_tables", "Lists tables by their names.", (*Memory).CatalogListTables, tea.Idempotent(), tea.Reads()),
		tea.NewMethod("catalog.track_file", "Adds or replaces files of a table.", writes((*Memory).CatalogTrackFile), tea.Idempotent()),
		tea.NewMethod("catalog.untrack_file", "Removes a file from a table; the file itself is not deleted.", writes((*Memory).CatalogUntrackFile), tea.Idempotent()),
		tea.NewMethod("catalog.get_file", "Describes a file of a table.", (*Memory).CatalogGetFile, tea.Idempotent(), tea.Reads()),
		tea.NewMethod("catalog.list_files", "Lists the files of a table by their paths.", (*Memory).CatalogListFiles, tea.Idempotent(), tea.Reads()),
		tea.NewMethod("catalog.create_snapshot", "Stores the list of the files that a table has now.", writes((*Memory).CatalogCreateSnapshot), tea.Idempotent()),
		tea.NewMethod("catalog.get_latest_snapshot", "Returns the last snapshot of a table.", (*Memory).CatalogGetLatestSnapshot, tea.Idempotent(), tea.Reads()),
		tea.NewMethod("catalog.list_snapshots", "Lists the snapshots of a table, the last one first.", (*Memory).CatalogListSnapshots, tea.Idempotent(), tea.Reads()),
		tea.NewMethod("catalog.get_changed_files", "Compares the files of a table: which were added, changed and removed.", (*Memory).CatalogGetChangedFiles, tea.Idempotent(), tea.Reads()),
	}
}

// TableView is a table as the catalog shows it.
type TableView struct {
	Table       string          `json:"table" doc:"name of the table"`
	Description string          `json:"description"`
	Format      string          `json:"format" doc:"format of its files, such as parquet or csv"`
	Location    string          `json:"location" doc:"location of its files"`
	Schema      json.RawMessage `json:"schema" doc:"columns as they were registered; null if there are none"`
	PrimaryKey  []string        `json:"primary_key"`
	PartitionBy []string        `json:"partition_by"`
	Metadata    json.RawMessage `json:"metadata" doc:"null if there is none"`
	Managed     bool            `json:"managed" doc:"true for a table of data.create_table, whose files and snapshots the data.* actions manage"`
	CreatedAt   string          `json:"created_at"`
	UpdatedAt   string          `json:"updated_at"`
	Damaged     bool            `json:"damaged,omitempty" doc:"true if its row in the database is damaged; only the name is set then"`
}

func tableView(t catalog.Table) TableView {
	return TableView{
		Table: t.Name, Description: t.Description, Format: t.Format, Location: t.Location, Schema: orNull(t.Schema), PrimaryKey: notNil(t.PrimaryKey),
		PartitionBy: notNil(t.PartitionBy), Metadata: orNull(t.Metadata), Managed: t.Managed, CreatedAt: clock.Text(t.CreatedAt.Time), UpdatedAt: clock.Text(t.UpdatedAt.Time), Damaged: t.Damaged,
	}
}

// CatalogRegisterTableParams are the parameters of catalog.register_table.
type CatalogRegisterTableParams struct {
	Name        string          `json:"name" minLength:"1" doc:"letters, digits and _.-; not case-sensitive"`
	Description string          `json:"description,omitempty" maxLength:"2000"`
	Format      string          `json:"format,omitempty" maxLength:"100" doc:"format of its files, such as parquet or csv"`
	Location    string          `json:"location,omitempty" maxLength:"1024" doc:"location of its files"`
	Schema      json.RawMessage `json:"schema,omitempty" doc:"columns, in any form"`
	PrimaryKey  keyNames        `json:"primary_key,omitempty" doc:"a column or a list of columns"`
	PartitionBy keyNames        `json:"partition_by,omitempty" doc:"a column or a list of columns"`
	Metadata    json.RawMessage `json:"metadata,omitempty" doc:"any object"`
}

// CatalogRegisterTableResult is the result of catalog.register_table.
type CatalogRegisterTableResult struct {
	Success bool `json:"success"`
	Created bool `json:"created" doc:"false if the entry existed and was replaced"`
	TableView
}

// CatalogRegisterTable is the action catalog.register_table.
func (m *Memory) CatalogRegisterTable(ctx context.Context, _ *tea.Request, p CatalogRegisterTableParams) (*CatalogRegisterTableResult, error) {
	t, created, err := m.folder.catalog.Register(ctx, catalog.Table{
		Name: p.Name, Description: p.Description, Format: p.Format, Location: p.Location, Schema: objectOrNone(p.Schema), PrimaryKey: p.PrimaryKey, PartitionBy: p.PartitionBy, Metadata: p.Metadata,
	})
	if err != nil {
		return nil, err
	}
	return &CatalogRegisterTableResult{Success: true, Created: created, TableView: tableView(t)}, nil
}

// CatalogTableParams name a table.
type CatalogTableParams struct {
	Table string `json:"table" minLength:"1"`
}

// CatalogTableResult is the result of catalog.get_table.
type CatalogTableResult struct {
	Success bool `json:"success"`
	TableView
}

// CatalogGetTable is the action catalog.get_table.
func (m *Memory) CatalogGetTable(ctx context.Context, _ *tea.Request, p CatalogTableParams) (*CatalogTableResult, error) {
	t, err := m.folder.catalog.Table(ctx, p.Table)
	if err != nil {
		return nil, err
	}
	return &CatalogTableResult{Success: true, TableView: tableView(t)}, nil
}

// CatalogListTablesParams are the parameters of catalog.list_tables.
type CatalogListTablesParams struct {
	Prefix string `json:"prefix,omitempty" doc:"beginning of the names"`
	Limit  int    `json:"limit,omitempty" default:"100" minimum:"1" maximum:"1000"`
	Cursor string `json:"cursor,omitempty" doc:"next_cursor of the previous page"`
}

// CatalogListTablesResult is the result of catalog.list_tables.
type CatalogListTablesResult struct {
	Success    bool        `json:"success"`
	Tables     []TableView `json:"tables" doc:"ordered by name"`
	Count      int         `json:"count" doc:"number on this page"`
	Total      int         `json:"total" doc:"number on all pages"`
	NextCursor string      `json:"next_cursor" doc:"empty on the last page"`
}

// CatalogListTables is the action catalog.list_tables.
func (m *Memory) CatalogListTables(ctx context.Context, _ *tea.Request, p CatalogListTablesParams) (*CatalogListTablesResult, error) {
	tables, total, err := m.folder.catalog.Tables(ctx, catalog.TableQuery{Prefix: p.Prefix, Page: catalogPage(p.Limit, p.Cursor)})
	if err != nil {
		return nil, err
	}
	r := &CatalogListTablesResult{Success: true, Total: total}
	r.Tables, r.NextCursor = pageOf(tables, p.Limit, tableView, func(t catalog.Table) string { return t.Name })
	r.Count = len(r.Tables)
	return r, nil
}

// catalogPage asks for one entry more than a page has, which shows whether there
// is a next page.
func catalogPage(limit int, cursor string) catalog.Page {
	return catalog.Page{Limit: limit + 1, After: cursor}
}

// pageOf returns the views of a page and the cursor of the next page.
func pageOf[T, V any](found []T, limit int, view func(T) V, name func(T) string) (views []V, next string) {
	if len(found) > limit {
		found = found[:limit]
		next = name(found[limit-1])
	}
	views = make([]V, len(found))
	for i, f := range found {
		views[i] = view(f)
	}
	return views, next
}

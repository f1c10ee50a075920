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
		tea.NewMethod("catalog.register_table", "Writes down what a table is, or changes that.", writes((*Memory).CatalogRegisterTable), tea.Idempotent()),
		tea.NewMethod("catalog.get_table", "Describes a table.", (*Memory).CatalogGetTable, tea.Idempotent()),
		tea.NewMethod("catalog.list_tables", "Lists tables by their names.", (*Memory).CatalogListTables, tea.Idempotent()),
		tea.NewMethod("catalog.track_file", "Writes down which files a table has.", writes((*Memory).CatalogTrackFile), tea.Idempotent()),
		tea.NewMethod("catalog.untrack_file", "Takes a file out of a table; the file itself stays.", writes((*Memory).CatalogUntrackFile), tea.Idempotent()),
		tea.NewMethod("catalog.get_file", "Describes a file of a table.", (*Memory).CatalogGetFile, tea.Idempotent()),
		tea.NewMethod("catalog.list_files", "Lists the files of a table by their paths.", (*Memory).CatalogListFiles, tea.Idempotent()),
		tea.NewMethod("catalog.create_snapshot", "Writes down which files a table has now.", writes((*Memory).CatalogCreateSnapshot), tea.Idempotent()),
		tea.NewMethod("catalog.get_latest_snapshot", "Gives the last snapshot of a table.", (*Memory).CatalogGetLatestSnapshot, tea.Idempotent()),
		tea.NewMethod("catalog.list_snapshots", "Lists the snapshots of a table, the last one first.", (*Memory).CatalogListSnapshots, tea.Idempotent()),
		tea.NewMethod("catalog.get_changed_files", "Says which files of a table were added, changed and removed.", (*Memory).CatalogGetChangedFiles, tea.Idempotent()),
	}
}

// TableView is a table as the catalog shows it.
type TableView struct {
	Table       string          `json:"table" doc:"its name"`
	Description string          `json:"description"`
	Format      string          `json:"format" doc:"what its files are, such as parquet or csv"`
	Location    string          `json:"location" doc:"where its files are"`
	Schema      json.RawMessage `json:"schema" doc:"its columns as they were given; null where they were not"`
	PrimaryKey  []string        `json:"primary_key"`
	PartitionBy []string        `json:"partition_by"`
	Metadata    json.RawMessage `json:"metadata" doc:"null where there is none"`
	Managed     bool            `json:"managed" doc:"it is a table of data.create_table, which keeps its files and snapshots itself"`
	CreatedAt   string          `json:"created_at"`
	UpdatedAt   string          `json:"updated_at"`
}

func tableView(t catalog.Table) TableView {
	return TableView{
		Table: t.Name, Description: t.Description, Format: t.Format, Location: t.Location, Schema: orNull(t.Schema), PrimaryKey: notNil(t.PrimaryKey),
		PartitionBy: notNil(t.PartitionBy), Metadata: orNull(t.Metadata), Managed: t.Managed, CreatedAt: clock.Text(t.CreatedAt.Time), UpdatedAt: clock.Text(t.UpdatedAt.Time),
	}
}

// CatalogRegisterTableParams are the parameters of catalog.register_table.
type CatalogRegisterTableParams struct {
	Name        string          `json:"name" minLength:"1" doc:"letters, digits and _.-; upper and lower case are the same"`
	Description string          `json:"description,omitempty" maxLength:"2000"`
	Format      string          `json:"format,omitempty" maxLength:"100" doc:"what its files are, such as parquet or csv"`
	Location    string          `json:"location,omitempty" maxLength:"1024" doc:"where its files are"`
	Schema      json.RawMessage `json:"schema,omitempty" doc:"its columns, in any form"`
	PrimaryKey  keyNames        `json:"primary_key,omitempty" doc:"a column or a list of them"`
	PartitionBy keyNames        `json:"partition_by,omitempty" doc:"a column or a list of them"`
	Metadata    json.RawMessage `json:"metadata,omitempty" doc:"an object"`
}

// CatalogRegisterTableResult is the result of catalog.register_table.
type CatalogRegisterTableResult struct {
	Success bool `json:"success"`
	Created bool `json:"created" doc:"false: it was there, and its entry was replaced"`
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
	Prefix string `json:"prefix,omitempty" doc:"what the names begin with"`
	Limit  int    `json:"limit,omitempty" default:"100" minimum:"1" maximum:"1000"`
	Cursor string `json:"cursor,omitempty" doc:"next_cursor of the page before"`
}

// CatalogListTablesResult is the result of catalog.list_tables.
type CatalogListTablesResult struct {
	Success    bool        `json:"success"`
	Tables     []TableView `json:"tables" doc:"in the order of their names"`
	Count      int         `json:"count" doc:"of this page"`
	Total      int         `json:"total" doc:"of all pages"`
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

// catalogPage asks for one entry more than a page has, which says whether there
// is a next page.
func catalogPage(limit int, cursor string) catalog.Page {
	return catalog.Page{Limit: limit + 1, After: cursor}
}

// pageOf makes the views of a page and the cursor of the next one.
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

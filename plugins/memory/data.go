package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"

	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
	"github.com/the-edge-agent/tea/plugins/memory/internal/tabular"
)

func dataActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("data.create_table", "Makes a table of typed rows, unless there is the same one.", writes((*Memory).DataCreateTable), tea.Idempotent()),
		tea.NewMethod("data.insert", "Adds rows to a table, all or none.", writes((*Memory).DataInsert), tea.Idempotent()),
		tea.NewMethod("data.update", "Changes rows of a table, all or none.", writes((*Memory).DataUpdate), tea.Idempotent()),
		tea.NewMethod("data.delete", "Removes rows of a table, all or none.", writes((*Memory).DataDelete), tea.Idempotent()),
		tea.NewMethod("data.query", "Asks the tables by SQL: one SELECT that can read them and nothing else.", (*Memory).DataQuery, tea.Idempotent()),
		tea.NewMethod("data.consolidate", "Puts the files and rows of a table together into one file.", writes((*Memory).DataConsolidate), tea.Idempotent()),
	}
}

// callOf recognizes the repetition of a call that changes a table.
func callOf(req *tea.Request, params any) (tabular.Call, error) {
	if req.IdempotencyKey == "" {
		return tabular.Call{}, nil
	}
	text, err := json.Marshal(params)
	if err != nil {
		return tabular.Call{}, tea.Errorf(tea.ValidationError, "parameters of %s: %w", req.Action, err)
	}
	sum := sha256.Sum256(append([]byte(req.Action+"\n"), text...))
	return tabular.Call{Key: req.IdempotencyKey, Hash: hex.EncodeToString(sum[:])}, nil
}

// DataCreateTableParams are the parameters of data.create_table.
type DataCreateTableParams struct {
	Name        string          `json:"name" minLength:"1" doc:"name of the table in SQL: letters, digits and _; upper and lower case are the same"`
	Schema      json.RawMessage `json:"schema" doc:"the columns: a list of {name, type, nullable}, or an object of names and types; types are string, int, float, decimal(12,2), bool, timestamp, date, json"`
	PrimaryKey  keyNames        `json:"primary_key,omitempty" doc:"column or columns of which no two rows have the same values; without it rows can only be added and chosen by where"`
	Description string          `json:"description,omitempty" maxLength:"2000"`
}

// keyNames is one name or a list of names.
type keyNames []string

// JSONSchema describes both forms.
func (keyNames) JSONSchema() *schema.Schema {
	one := &schema.Schema{Type: schema.Types{"string"}}
	return &schema.Schema{AnyOf: []*schema.Schema{one, {Type: schema.Types{"array"}, Items: one}}}
}

// UnmarshalJSON takes a text for a list of one.
func (k *keyNames) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*k = keyNames{one}
		return nil
	}
	var list []string
	if err := json.Unmarshal(raw, &list); err != nil {
		return tea.Errorf(tea.ValidationError, "a column's name or a list of them, not %.40s", raw)
	}
	*k = list
	return nil
}

// DataCreateTableResult is the result of data.create_table.
type DataCreateTableResult struct {
	Success    bool             `json:"success"`
	Table      string           `json:"table"`
	Created    bool             `json:"created" doc:"false: the same table was there"`
	Columns    []tabular.Column `json:"columns"`
	PrimaryKey []string         `json:"primary_key"`
}

// DataCreateTable is the action data.create_table.
func (m *Memory) DataCreateTable(ctx context.Context, _ *tea.Request, p DataCreateTableParams) (*DataCreateTableResult, error) {
	columns, err := tabular.ParseSchema(p.Schema, p.PrimaryKey)
	if err != nil {
		return nil, err
	}
	created, err := m.folder.tables.Create(ctx, tabular.NewTable{Name: p.Name, Columns: columns, PrimaryKey: p.PrimaryKey, Description: p.Description})
	if err != nil {
		return nil, err
	}
	return &DataCreateTableResult{Success: true, Table: p.Name, Created: created, Columns: columns, PrimaryKey: notNil(p.PrimaryKey)}, nil
}

// notNil is an empty list for none, which is [] in JSON rather than null.
func notNil[S ~[]E, E any](list S) S {
	if list == nil {
		return S{}
	}
	return list
}

// Where a change is: in a file, in the database's rows, or there was nothing to
// write.
const (
	storedInFile = "file"
	storedInRows = "rows"
	storedNot    = "none"
)

// DataChanged says where a change of a table is.
type DataChanged struct {
	Version int64  `json:"version" doc:"number of the table's last change; it only grows"`
	Stored  string `json:"stored" enum:"rows,file,none" doc:"less than 1 KB is kept in rows, more is a Parquet file (in rows too where the database is sqlite); none: nothing changed"`
	Path    string `json:"path,omitempty" doc:"the file, as catalog.list_files has it"`
	Bytes   int64  `json:"bytes,omitempty" doc:"size of the file"`
}

func changed(r tabular.Result) DataChanged {
	c := DataChanged{Version: r.Version, Stored: storedInRows, Path: r.File, Bytes: r.Bytes}
	switch {
	case r.File != "":
		c.Stored = storedInFile
	case r.Inserted+r.Updated+r.Deleted == 0:
		c.Stored = storedNot
	}
	return c
}

// DataInsertParams are the parameters of data.insert.
type DataInsertParams struct {
	Table      string        `json:"table" minLength:"1"`
	Rows       []tabular.Row `json:"rows" doc:"objects of columns and values; a column that is left out is null"`
	OnConflict string        `json:"on_conflict,omitempty" default:"error" enum:"error,replace,ignore" doc:"what becomes of a row whose key is there: nothing at all is inserted, it replaces the one that is there, or it is left out"`
}

// DataInsertResult is the result of data.insert.
type DataInsertResult struct {
	Success  bool   `json:"success"`
	Table    string `json:"table"`
	RowCount int64  `json:"row_count" doc:"rows that were written: inserted and replaced"`
	Inserted int64  `json:"inserted"`
	Replaced int64  `json:"replaced"`
	Ignored  int64  `json:"ignored" doc:"rows that were left out since their key was there"`
	DataChanged
}

// DataInsert is the action data.insert.
func (m *Memory) DataInsert(ctx context.Context, req *tea.Request, p DataInsertParams) (*DataInsertResult, error) {
	if len(p.Rows) > maxItems {
		return nil, tea.Errorf(tea.ValidationError, "%d rows are more than %d", len(p.Rows), maxItems)
	}
	call, err := callOf(req, p)
	if err != nil {
		return nil, err
	}
	r, err := m.folder.tables.Insert(ctx, p.Table, p.Rows, tabular.Conflict(p.OnConflict), call)
	if err != nil {
		return nil, err
	}
	return &DataInsertResult{Success: true, Table: p.Table, RowCount: r.Inserted + r.Updated, Inserted: r.Inserted, Replaced: r.Updated, Ignored: r.Ignored, DataChanged: changed(r)}, nil
}

// DataUpdateParams are the parameters of data.update: rows, or set with the
// rows that it is for.
type DataUpdateParams struct {
	Table string        `json:"table" minLength:"1"`
	Rows  []tabular.Row `json:"rows,omitempty" doc:"objects with the columns of the primary key and those to change; instead of set"`
	Set   tabular.Row   `json:"set,omitempty" doc:"columns and their new values; null empties one"`
	DataChosen
}

// DataChosen says which rows are meant.
type DataChosen struct {
	Keys  []json.RawMessage `json:"keys,omitempty" doc:"primary keys of the rows: a value, a list in the key's order, or an object of its columns"`
	Where tabular.Row       `json:"where,omitempty" doc:"columns and the values that they must have; a list means any of its values"`
	All   bool              `json:"all,omitempty" doc:"every row of the table"`
}

func (c DataChosen) rows() tabular.Rows {
	return tabular.Rows{Keys: c.Keys, Where: c.Where, All: c.All}
}

// DataChangedResult is the result of data.update and data.delete.
type DataChangedResult struct {
	Success  bool   `json:"success"`
	Table    string `json:"table"`
	Affected int64  `json:"affected" doc:"rows that were changed or removed"`
	Missing  int64  `json:"missing" doc:"keys that the table does not have"`
	DataChanged
}

// DataUpdate is the action data.update.
func (m *Memory) DataUpdate(ctx context.Context, req *tea.Request, p DataUpdateParams) (*DataChangedResult, error) {
	call, err := callOf(req, p)
	if err != nil {
		return nil, err
	}
	var r tabular.Result
	switch {
	case p.Rows == nil:
		r, err = m.folder.tables.Update(ctx, p.Table, p.rows(), p.Set, call)
	case p.Set != nil || p.Keys != nil || p.Where != nil || p.All:
		err = tea.Errorf(tea.ValidationError, "data.update takes rows alone, or set with keys, where or all")
	case len(p.Rows) > maxItems:
		err = tea.Errorf(tea.ValidationError, "%d rows are more than %d", len(p.Rows), maxItems)
	default:
		r, err = m.folder.tables.UpdateRows(ctx, p.Table, p.Rows, call)
	}
	if err != nil {
		return nil, err
	}
	return &DataChangedResult{Success: true, Table: p.Table, Affected: r.Updated, Missing: r.Missing, DataChanged: changed(r)}, nil
}

// DataDeleteParams are the parameters of data.delete.
type DataDeleteParams struct {
	Table string `json:"table" minLength:"1"`
	DataChosen
}

// DataDelete is the action data.delete.
func (m *Memory) DataDelete(ctx context.Context, req *tea.Request, p DataDeleteParams) (*DataChangedResult, error) {
	call, err := callOf(req, p)
	if err != nil {
		return nil, err
	}
	r, err := m.folder.tables.Delete(store.Freeing(ctx), p.Table, p.rows(), call)
	if err != nil {
		return nil, err
	}
	return &DataChangedResult{Success: true, Table: p.Table, Affected: r.Deleted, Missing: r.Missing, DataChanged: changed(r)}, nil
}

// DataQueryParams are the parameters of data.query.
type DataQueryParams struct {
	SQL            string   `json:"sql" minLength:"1" doc:"one SELECT; the tables of data.create_table have their names"`
	Args           []any    `json:"args,omitempty" doc:"values for the ? in it"`
	Tables         []string `json:"tables,omitempty" doc:"the tables that it may read; default all of data.create_table"`
	MaxRows        int      `json:"max_rows,omitempty" default:"1000" minimum:"1" maximum:"100000" doc:"rows beyond are left out, and truncated is true"`
	TimeoutSeconds float64  `json:"timeout_seconds,omitempty" default:"30" minimum:"0.001" maximum:"3600"`
}

// DataQueryResult is the result of data.query.
type DataQueryResult struct {
	Success   bool             `json:"success"`
	Columns   []string         `json:"columns" doc:"names of the columns in their order; the second of two equal names gets a number at its end"`
	Rows      []map[string]any `json:"rows" doc:"objects of columns and values; a timestamp is text in RFC 3339 in UTC"`
	RowCount  int              `json:"row_count"`
	Truncated bool             `json:"truncated" doc:"there were more rows than max_rows, or more bytes than an answer may have"`
}

// maxAnswer bounds the bytes of a query's answer.
const maxAnswer = 16 << 20

// DataQuery is the action data.query.
func (m *Memory) DataQuery(ctx context.Context, _ *tea.Request, p DataQueryParams) (*DataQueryResult, error) {
	a, err := m.folder.tables.Query(ctx, tabular.Query{
		SQL: p.SQL, Args: p.Args, Tables: p.Tables, MaxRows: p.MaxRows, MaxBytes: maxAnswer, Timeout: time.Duration(p.TimeoutSeconds * float64(time.Second)),
	})
	if err != nil {
		return nil, err
	}
	return &DataQueryResult{Success: true, Columns: a.Columns, Rows: a.Rows, RowCount: len(a.Rows), Truncated: a.Truncated}, nil
}

// DataConsolidateParams are the parameters of data.consolidate.
type DataConsolidateParams struct {
	Table string `json:"table" minLength:"1"`
}

// DataConsolidateResult is the result of data.consolidate.
type DataConsolidateResult struct {
	Success     bool   `json:"success"`
	Table       string `json:"table"`
	FilesBefore int    `json:"files_before"`
	FilesAfter  int    `json:"files_after" doc:"1; 0 where the table is empty or the database is sqlite"`
	RowsBefore  int64  `json:"rows_before" doc:"changes that were read: also those that others have overtaken"`
	Rows        int64  `json:"rows" doc:"rows of the table"`
	Snapshot    string `json:"snapshot" doc:"the catalog's snapshot of the table as it is now"`
	Path        string `json:"path,omitempty" doc:"the file"`
	Bytes       int64  `json:"bytes" doc:"size of the file"`
}

// DataConsolidate is the action data.consolidate.
func (m *Memory) DataConsolidate(ctx context.Context, _ *tea.Request, p DataConsolidateParams) (*DataConsolidateResult, error) {
	c, err := m.folder.tables.Consolidate(ctx, p.Table)
	if err != nil {
		return nil, err
	}
	return &DataConsolidateResult{
		Success: true, Table: p.Table, FilesBefore: c.FilesBefore, FilesAfter: len(c.Snapshot.Files), RowsBefore: c.RowsBefore, Rows: c.Rows,
		Snapshot: c.Snapshot.ID, Path: c.File, Bytes: c.Bytes,
	}, nil
}

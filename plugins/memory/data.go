package memory

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"

	"github.com/the-edge-agent/tea/plugins/memory/internal/tabular"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func dataActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("data.create_table", "Creates a table of typed rows, if it does not exist.", writes(needsTables((*Memory).DataCreateTable)), tea.Idempotent()),
		tea.NewMethod("data.insert", "Inserts rows into a table, atomically.", writes(needsTables((*Memory).DataInsert)), tea.Idempotent()),
		tea.NewMethod("data.update", "Updates rows of a table, atomically.", writes(needsTables((*Memory).DataUpdate)), tea.Idempotent()),
		tea.NewMethod("data.delete", "Removes rows from a table, atomically.", writes(needsTables((*Memory).DataDelete)), tea.Idempotent()),
		tea.NewMethod("data.query", "Queries the tables by SQL: one SELECT that can only read them.", needsTables((*Memory).DataQuery), tea.Idempotent(), tea.Reads()),
		tea.NewMethod("data.consolidate", "Merges the files and rows of a table into one file.", writes(needsTables((*Memory).DataConsolidate)), tea.Idempotent()),
	}
}

// callOf identifies a call that changes a table, so that a repetition is
// recognized.
func callOf(req *tea.Request, params any) (store.TableCall, error) {
	if req.IdempotencyKey == "" {
		return store.TableCall{}, nil
	}
	text, err := json.Marshal(params)
	if err != nil {
		return store.TableCall{}, tea.Errorf(tea.ValidationError, "parameters of %s: %w", req.Action, err)
	}
	sum := sha256.Sum256(append([]byte(req.Action+"\n"), text...))
	return store.TableCall{Key: req.IdempotencyKey, Hash: hex.EncodeToString(sum[:])}, nil
}

// DataCreateTableParams are the parameters of data.create_table.
type DataCreateTableParams struct {
	Name        string          `json:"name" minLength:"1" doc:"name of the table in SQL: letters, digits and _; not case-sensitive"`
	Schema      json.RawMessage `json:"schema" doc:"the columns: a list of {name, type, nullable}, or an object of names and types; types are string, int, float, decimal(12,2), bool, timestamp, date, json"`
	PrimaryKey  keyNames        `json:"primary_key,omitempty" doc:"column or columns that identify a row; without a key rows can only be inserted, and selected by where"`
	Description string          `json:"description,omitempty" maxLength:"2000"`
}

// keyNames is one name or a list of names.
type keyNames []string

// JSONSchema describes both forms.
func (keyNames) JSONSchema() *schema.Schema {
	one := &schema.Schema{Type: schema.Types{"string"}}
	return &schema.Schema{AnyOf: []*schema.Schema{one, {Type: schema.Types{"array"}, Items: one}}}
}

// UnmarshalJSON accepts a text as a list of one name.
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
	Created    bool             `json:"created" doc:"false if the same table existed"`
	Columns    []tabular.Column `json:"columns"`
	PrimaryKey []string         `json:"primary_key"`
}

// DataCreateTable is the action data.create_table.
func (m *Memory) DataCreateTable(ctx context.Context, _ *tea.Request, p DataCreateTableParams) (*DataCreateTableResult, error) {
	columns, err := tabular.ParseSchema(p.Schema, p.PrimaryKey)
	if err != nil {
		return nil, err
	}
	created, err := m.folder.tables.Create(ctx, store.NewTable{Name: p.Name, Schema: p.Schema, PrimaryKey: p.PrimaryKey, Description: p.Description})
	if err != nil {
		return nil, err
	}
	return &DataCreateTableResult{Success: true, Table: p.Name, Created: created, Columns: columns, PrimaryKey: notNil(p.PrimaryKey)}, nil
}

// notNil returns an empty list for nil, so that its JSON is [] rather than null.
func notNil[S ~[]E, E any](list S) S {
	if list == nil {
		return S{}
	}
	return list
}

// Where a change is stored: in a file, in the database's rows, or nowhere if
// nothing changed.
const (
	storedInFile = "file"
	storedInRows = "rows"
	storedNot    = "none"
)

// DataChanged says where a change of a table is.
type DataChanged struct {
	Version int64  `json:"version" doc:"number of the table's last change; it only increases"`
	Stored  string `json:"stored" enum:"rows,file,none" doc:"rows for less than 1 KB, otherwise a Parquet file (with sqlite always rows); none if nothing changed"`
	Path    string `json:"path,omitempty" doc:"path of the file, as in catalog.list_files"`
	Bytes   int64  `json:"bytes,omitempty" doc:"size of the file"`
}

func changed(r store.TableResult) DataChanged {
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
	Table      string           `json:"table" minLength:"1"`
	Rows       []store.TableRow `json:"rows" doc:"objects of columns and values; a missing column is null"`
	OnConflict string           `json:"on_conflict,omitempty" default:"error" enum:"error,replace,ignore" doc:"if a row has the key of an existing one: error inserts no row, replace replaces the existing one, ignore skips the new one"`
}

// DataInsertResult is the result of data.insert.
type DataInsertResult struct {
	Success  bool   `json:"success"`
	Table    string `json:"table"`
	RowCount int64  `json:"row_count" doc:"number of rows that were inserted or replaced"`
	Inserted int64  `json:"inserted"`
	Replaced int64  `json:"replaced"`
	Ignored  int64  `json:"ignored" doc:"number of rows that were skipped because their key existed"`
	DataChanged
}

// DataInsert is the action data.insert.
func (m *Memory) DataInsert(ctx context.Context, req *tea.Request, p DataInsertParams) (*DataInsertResult, error) {
	if len(p.Rows) > maxItems {
		return nil, tea.Errorf(tea.ValidationError, "too many rows: %d (limit %d)", len(p.Rows), maxItems)
	}
	call, err := callOf(req, p)
	if err != nil {
		return nil, err
	}
	r, err := m.folder.tables.Insert(ctx, p.Table, p.Rows, store.RowConflict(p.OnConflict), call)
	if err != nil {
		return nil, err
	}
	return &DataInsertResult{Success: true, Table: p.Table, RowCount: r.Inserted + r.Updated, Inserted: r.Inserted, Replaced: r.Updated, Ignored: r.Ignored, DataChanged: changed(r)}, nil
}

// DataUpdateParams are the parameters of data.update: rows, or set with a
// selection of rows.
type DataUpdateParams struct {
	Table string           `json:"table" minLength:"1"`
	Rows  []store.TableRow `json:"rows,omitempty" doc:"objects with the primary key and the columns to change; instead of set"`
	Set   store.TableRow   `json:"set,omitempty" doc:"columns and their new values; null removes a value"`
	DataChosen
}

// DataChosen selects rows.
type DataChosen struct {
	Keys  []json.RawMessage `json:"keys,omitempty" doc:"primary keys of the rows: each a value, a list in the key's order, or an object of its columns"`
	Where store.TableRow    `json:"where,omitempty" doc:"columns and the values that they must have; a list means any of its values"`
	All   bool              `json:"all,omitempty" doc:"select every row of the table"`
}

func (c DataChosen) rows() store.RowSelection {
	return store.RowSelection{Keys: c.Keys, Where: c.Where, All: c.All}
}

// DataChangedResult is the result of data.update and data.delete.
type DataChangedResult struct {
	Success  bool   `json:"success"`
	Table    string `json:"table"`
	Affected int64  `json:"affected" doc:"number of rows that were changed or removed"`
	Missing  int64  `json:"missing" doc:"number of keys that do not exist"`
	DataChanged
}

// DataUpdate is the action data.update.
func (m *Memory) DataUpdate(ctx context.Context, req *tea.Request, p DataUpdateParams) (*DataChangedResult, error) {
	call, err := callOf(req, p)
	if err != nil {
		return nil, err
	}
	var r store.TableResult
	switch {
	case p.Rows == nil:
		r, err = m.folder.tables.Update(ctx, p.Table, p.rows(), p.Set, call)
	case p.Set != nil || p.Keys != nil || p.Where != nil || p.All:
		err = tea.Errorf(tea.ValidationError, "data.update takes either rows, or set with keys, where or all")
	case len(p.Rows) > maxItems:
		err = tea.Errorf(tea.ValidationError, "too many rows: %d (limit %d)", len(p.Rows), maxItems)
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
	SQL            string   `json:"sql,omitempty" doc:"one SELECT over the tables of data.create_table; default all rows of table"`
	Table          string   `json:"table,omitempty" doc:"the only table that the query can read, instead of tables"`
	Args           []any    `json:"args,omitempty" doc:"values for the ? in the query"`
	Tables         []string `json:"tables,omitempty" doc:"tables that the query can read; default all"`
	MaxRows        int      `json:"max_rows,omitempty" default:"1000" minimum:"1" maximum:"100000" doc:"largest number of rows; if there are more, truncated is true"`
	TimeoutSeconds float64  `json:"timeout_seconds,omitempty" default:"30" minimum:"0.001" maximum:"3600"`
}

// DataQueryResult is the result of data.query.
type DataQueryResult struct {
	Success   bool             `json:"success"`
	Columns   []string         `json:"columns" doc:"names of the columns in their order; a number is appended to the second of two equal names"`
	Rows      []map[string]any `json:"rows" doc:"objects of columns and values; a timestamp is text in RFC 3339 in UTC"`
	RowCount  int              `json:"row_count"`
	Truncated bool             `json:"truncated" doc:"true if rows are missing because of max_rows or the size limit of a result"`
}

// maxAnswer bounds the bytes of a query's answer.
const maxAnswer = 16 << 20

// DataQuery is the action data.query.
func (m *Memory) DataQuery(ctx context.Context, _ *tea.Request, p DataQueryParams) (*DataQueryResult, error) {
	switch {
	case p.Table != "" && p.Tables != nil:
		return nil, tea.Errorf(tea.ValidationError, "data.query takes table or tables, not both")
	case p.Table != "":
		p.Tables = []string{p.Table}
		p.SQL = cmp.Or(strings.TrimSpace(p.SQL), `SELECT * FROM "`+strings.ReplaceAll(p.Table, `"`, `""`)+`"`)
	case strings.TrimSpace(p.SQL) == "":
		return nil, tea.Errorf(tea.ValidationError, "data.query needs sql, or a table for all of its rows")
	}
	a, err := m.folder.tables.Query(ctx, store.TableQuery{
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
	FilesAfter  int    `json:"files_after" doc:"1, or 0 if the table is empty or the database is sqlite"`
	RowsBefore  int64  `json:"rows_before" doc:"number of changes that were read, including overwritten ones"`
	Rows        int64  `json:"rows" doc:"number of rows in the table"`
	Snapshot    string `json:"snapshot" doc:"id of the snapshot that was created in the catalog"`
	Path        string `json:"path,omitempty" doc:"path of the file"`
	Bytes       int64  `json:"bytes" doc:"size of the file"`
}

// DataConsolidate is the action data.consolidate.
func (m *Memory) DataConsolidate(ctx context.Context, _ *tea.Request, p DataConsolidateParams) (*DataConsolidateResult, error) {
	c, err := m.folder.tables.Consolidate(ctx, p.Table)
	if err != nil {
		return nil, err
	}
	return &DataConsolidateResult{
		Success: true, Table: p.Table, FilesBefore: c.FilesBefore, FilesAfter: c.FilesAfter, RowsBefore: c.RowsBefore, Rows: c.Rows,
		Snapshot: c.Snapshot, Path: c.File, Bytes: c.Bytes,
	}, nil
}

package store

import (
	"context"
	"encoding/json"
	"time"
)

// TableStore is the tables of the actions data.*: rows with typed columns. A
// change is atomic, and durable when its call returns. Names of tables are not
// case-sensitive.
//
// An invalid table, column, row or value is a validation_error, a table that does
// not exist a not_found. Implementations are safe for concurrent use.
type TableStore interface {
	// Create creates a table and reports whether it is new. An existing table must
	// have the same columns and primary key, otherwise the error is a
	// validation_error.
	Create(ctx context.Context, t NewTable) (created bool, err error)
	// Insert adds rows.
	Insert(ctx context.Context, table string, rows []TableRow, conflict RowConflict, call TableCall) (TableResult, error)
	// Update sets columns of the selected rows. The primary key cannot change.
	Update(ctx context.Context, table string, which RowSelection, set TableRow, call TableCall) (TableResult, error)
	// UpdateRows sets the given columns of the rows with the same primary keys. Rows
	// that do not exist are counted as missing.
	UpdateRows(ctx context.Context, table string, rows []TableRow, call TableCall) (TableResult, error)
	// Delete removes the selected rows.
	Delete(ctx context.Context, table string, which RowSelection, call TableCall) (TableResult, error)
	// Query runs a SELECT of a workflow over the committed rows, under the
	// restrictions of a [Sandbox].
	Query(ctx context.Context, query TableQuery) (TableAnswer, error)
	// Rows returns at most limit rows of a table as JSON objects, which can be
	// inserted again, in an order that no change affects. after is a position that
	// an earlier call returned; "" = from the beginning. next is "" after the last
	// row. So a reader of all rows gets each row once that exists throughout.
	Rows(ctx context.Context, table, after string, limit int) (rows []json.RawMessage, next string, err error)
	// Consolidate optimizes a table for reading, and adds a snapshot of it to the
	// catalog.
	Consolidate(ctx context.Context, table string) (Consolidated, error)
}

// NewTable defines a table.
type NewTable struct {
	Name string
	// Schema is a list of columns: [{"name": "id", "type": "int", "nullable": false}].
	// The types are string, int, float, decimal(12,2), bool, timestamp, date and json.
	Schema      json.RawMessage
	PrimaryKey  []string
	Description string
}

// TableRow is the JSON values of a row, by column. A missing value is null.
type TableRow map[string]json.RawMessage

// RowSelection selects rows of a table: the rows with one of the keys, or the
// rows whose columns have the values of Where (a list means any of its values).
// If both are given, both must match. All selects all rows.
type RowSelection struct {
	// Keys are values of the primary key: a list in its order or an object of
	// its columns; for a key of one column also the value itself.
	Keys  []json.RawMessage
	Where TableRow
	All   bool
}

// RowConflict is the policy for a new row whose key exists.
type RowConflict string

// RowFail refuses all rows, RowReplace replaces the existing row, RowIgnore keeps
// it.
const (
	RowFail    RowConflict = "error"
	RowReplace RowConflict = "replace"
	RowIgnore  RowConflict = "ignore"
)

// TableCall identifies a change so that it is idempotent: after a crash, a
// workflow repeats the call that was running, which may already be done. A call
// with the Key and Hash of an earlier call returns the earlier result and changes
// nothing. Without a Key, every call is new.
type TableCall struct {
	Key string
	// Hash is a hash of the parameters.
	Hash string
}

// TableResult counts the rows of a change.
type TableResult struct {
	Inserted, Updated, Deleted, Ignored int64
	// Missing is the number of given keys that do not exist.
	Missing int64
	// Version is the number of the table's last change; it only increases.
	Version int64
	// File is the path of the written file, "" for none, and Bytes its size.
	File  string
	Bytes int64
}

// TableQuery is a SELECT of a workflow.
type TableQuery struct {
	SQL  string
	Args []any
	// Tables are the tables that the query can read; nil = all tables.
	Tables   []string
	MaxRows  int
	MaxBytes int
	Timeout  time.Duration
}

// TableAnswer is the result of a TableQuery. Truncated reports whether rows are
// missing because of MaxRows or MaxBytes.
type TableAnswer struct {
	Columns   []string
	Rows      []map[string]any
	Truncated bool
}

// AnswerOf returns the rows of a Select as objects.
func AnswerOf(t Table) TableAnswer {
	a := TableAnswer{Columns: t.Columns, Rows: make([]map[string]any, len(t.Rows)), Truncated: t.Truncated}
	for i, row := range t.Rows {
		a.Rows[i] = make(map[string]any, len(row))
		for j, v := range row {
			a.Rows[i][t.Columns[j]] = v
		}
	}
	return a
}

// Consolidated is the result of a consolidation.
type Consolidated struct {
	// FilesBefore and FilesAfter are the numbers of the table's files.
	FilesBefore, FilesAfter int
	RowsBefore              int64 // changes, in files and in the database
	Rows                    int64
	// File is the path of the written file, "" for none, and Bytes its size.
	File  string
	Bytes int64
	// Snapshot is the id of the snapshot.
	Snapshot string
}

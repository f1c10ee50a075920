// Package tabular keeps the user's tables: typed rows that are inserted, updated
// and deleted, and queried by SQL. Start with [New].
//
// A table is a log of changes. Each change has an increasing number (the
// version), an operation (I, U or D) and a key. The last change of a key is its
// row; a D means that there is none. An I is written only if the table has no row
// with its key, so it hides no earlier change: a search for the last changes
// compares only with U and D, which are few.
//
// The log of table x is the database's table tea_rows_x, and on DuckDB Parquet
// files next to it: a change of a kilobyte or more becomes a file, written and
// synced before the catalog row that names it. Consolidate merges all files into
// one, the base; later changes are the delta.
//
// Views combine these: tea_delta_x is the log without the base, tea_live_x the
// last change of each key, and x the user's view.
package tabular

// Package tabular keeps tables of the user: typed rows that are added,
// changed and removed, and read by SQL. Start with [New].
//
// A table is a log of changes. Each has a number that only grows (the
// version), an operation (I, U or D) and a key; the last change of a key is
// what the table has there, and a D hides it. An I is written only where the
// table has no row with its key, so it hides nothing: whoever looks for the
// last changes compares with U and D alone, which are few.
//
// The log of table x is the database's table tea_rows_x, and on DuckDB
// Parquet files beside it: a change of a kilobyte or more becomes a file,
// written and synced before the row of the catalog that names it. Consolidate
// makes one file of all; a file that was made so is the base, what came later
// is the delta.
//
// Views put that together: tea_delta_x is the log without the base, tea_live_x
// the last change of each key, and x what the user sees.
package tabular

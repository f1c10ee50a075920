// Package embedded is the [store.Driver] of the databases in a process, SQLite and DuckDB: rows in tables of a
// [store.QueryEngine], large values in blobs, and two companions in files, a text index of the entries (index.go) and
// an index for each collection of vectors (collection.go). Start with [New].
//
// Every change gets a sequence number. A companion that is behind reads the rows with larger numbers than its own.
package embedded

// Package duckdb is the engine's driver for DuckDB, which is linked in as a C
// library. Builds without cgo, with the tag lite or for a platform that DuckDB
// has no library for leave the driver out; see [Available].
package duckdb

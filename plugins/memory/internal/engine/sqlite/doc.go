// Package sqlite is the engine's driver for SQLite in pure Go
// (modernc.org/sqlite). It is in every build.
package sqlite

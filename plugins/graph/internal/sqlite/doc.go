// Package sqlite is the backend memory: a graph in one SQLite database, without
// C. It is in every build. Start with [Open].
package sqlite

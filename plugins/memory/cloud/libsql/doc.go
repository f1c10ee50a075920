// Package libsql stores the memory in a libSQL database: Turso or a libSQL server. Start with [Option].
//
// It uses the HTTP pipeline of the Hrana protocol, version 2: one request is one transaction. libSQL's embedded replica
// is not used because it needs cgo and its own engine; memory.sync is for reading offline.
package libsql

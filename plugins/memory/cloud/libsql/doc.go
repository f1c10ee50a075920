// Package libsql has the memory in a libSQL database: Turso, or a server of
// libSQL. Start with [Option].
//
// It speaks the pipeline over HTTP of the Hrana protocol, version 2: one request
// is one transaction. The embedded replica of libSQL needs cgo and its engine and
// is not used; reading without a connection is what memory.sync is for.
package libsql

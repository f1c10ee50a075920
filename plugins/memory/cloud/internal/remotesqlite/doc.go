// Package remotesqlite has the stores of the memory in an SQLite database behind
// an API that runs a list of statements as one transaction: libSQL and
// Cloudflare D1. Start with [Open]; a [Server] is the API.
//
// # Round trips
//
// A call is one request wherever possible. A request cannot branch on what it
// reads, so the conditions of a write are in its statements.
//
// # Writes
//
// An answer can be lost after the write was done. Each write has an id; its
// first statements add a row with this id to tea_ops, and all further statements
// depend on that row. If the request is sent again, they change nothing, and the
// last statement returns the result of the first run. The rows are removed after
// a day.
//
// # Parameters
//
// All parameters are text, since D1 takes nothing else, and at most 100: lists
// are JSON and read with json_each. Keys, ids and texts can contain the character
// NUL, which SQLite's functions take for an end; see escape.
//
// # Text search
//
// Words are analyzed by tea, as for the embedded engines: the FTS5 table
// ltm_text has stems, and the tokenizer only splits at spaces. Scores are FTS5's
// BM25 over the entries of all namespaces.
package remotesqlite

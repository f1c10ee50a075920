// Package remotesqlite stores the memory in an SQLite database behind an API that runs a list of statements as one
// transaction, such as libSQL and Cloudflare D1. Start with [Open]; a [Server] is the API.
//
// # Round trips
//
// A call is one request wherever possible. A request cannot branch on what it
// reads, so the conditions of a write are in its statements.
//
// # Writes
//
// The response to a write can be lost. Each write therefore has an id: its first statements add a row with this id to
// tea_ops, and all further statements depend on that row. If the request is repeated, they have no effect, and the last
// statement returns the first result. The rows are removed after a day.
//
// # Parameters
//
// D1 accepts at most 100 parameters, all of them text, so lists are passed as JSON and read with json_each. Keys, ids
// and texts can contain NUL, which ends a string in SQLite's functions; see escaper.
//
// # Text search
//
// As with the embedded engines, tea analyzes the words: the FTS5 table ltm_text has stems, and the tokenizer only
// splits at spaces. Scores are FTS5's BM25 over the entries of all namespaces.
package remotesqlite

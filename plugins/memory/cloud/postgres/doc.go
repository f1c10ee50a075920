// Package postgres stores the memory in PostgreSQL 13 or later. Start with
// [Option]; database is the [store.Driver].
//
// All tables are in one schema, by default tea, so a database can have several memories. Devices and processes can use
// a memory concurrently.
//
// Statements use the extended protocol without prepared statements: each is one round trip, even on a new connection.
// ltm.retrieve and ltm.store are one statement each. A connection has the schema and the time-outs as startup
// parameters, which a pooler between client and server must pass on.
//
// # Words
//
// As for the embedded engines, package internal/fulltext splits a text into words, removes accents and stems the words.
// The server stores the stems with their positions as a tsvector with a GIN index. So the same words match with every
// engine, in every language of settings.ltm.language. Results are ranked by ts_rank with the logarithm of the length
// (normalization 1). It does not weigh rare words, so the order differs from BM25. The server stores positions up to
// 16,383: later phrases are not found. At most 200 KB of stems are indexed per text.
//
// # Vectors
//
// If the database has the extension vector, the server compares the vectors, see extension and nearest. Otherwise they
// are compared exactly, in memory: the first search of a collection reads its vectors, later searches read the changes.
//
// # Numbers of changes
//
// A write of documents or vectors locks the row of the last number until it is committed, so a reader that has seen a
// number has seen all smaller ones. Entries of the long-term memory are written concurrently: their changes get
// negative numbers from a sequence, and a reader of changes first replaces the negative numbers of committed changes
// with the next positive ones (the function tea_number). So only memories that are archived or synchronised bear the
// cost.
package postgres

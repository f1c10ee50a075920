// Package postgres stores the memory in PostgreSQL 13 or later. Start with
// [Option]; database is the [store.Driver].
//
// All tables are in one schema, tea unless the options name another one, so that
// a database can have several memories. Devices and processes use it at the same
// time.
//
// Statements run in the extended protocol without prepared statements: each is
// one round trip also on a new connection. ltm.retrieve and ltm.store are one
// statement each. A connection has the schema and the time-outs as startup
// parameters, which a pooler between client and server must pass on.
//
// # Words
//
// Package internal/fulltext cuts a text into words, removes accents and stems
// them, as for the embedded engines; the server stores the stems with their
// positions as tsvector and finds them by a GIN index. So the words that match
// are the same with every engine, in every language of settings.ltm.language.
// Results are ranked by ts_rank with the logarithm of the length (normalization
// 1), which has no weights for rare words: the order differs from BM25. The server
// stores positions up to 16,383: a phrase further behind in a text is not
// found. Of a text, 200 KB of stems are indexed.
//
// # Vectors
//
// If the database has the extension vector, the server compares the vectors, see
// extension and nearest. Otherwise they are compared exactly, in memory: the first
// search of a collection reads its vectors, later ones what has changed.
//
// # Numbers of changes
//
// A write of documents or vectors locks the row of the last number until it is
// committed, so a reader that has seen a number has seen all smaller ones. Entries
// of the long-term memory are written concurrently: their changes get negative
// numbers from a sequence, and a reader of changes first replaces those that are
// committed by the next numbers (the function tea_number). So only memories that
// are archived or synchronised pay for it.
package postgres

// Package keyed stores a memory in an ordered key-value database, such as IndexedDB in a browser. Start with [Open].
//
// A record has a row under its feed, space and key. A second pair, keyed by the number of its last change, is its place
// in the feed, which store.Replica, the text index and the mirrors of vectors read. A deleted record has a tombstone in
// place of its row. Large values are stored once per SHA-256, with the number of rows that refer to them.
//
// One process writes at a time (see [DB.Lock]), others can read. Every write is one
// atomic batch of pairs.
package keyed

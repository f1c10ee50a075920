// Package keyed has the stores of a memory over an ordered key-value database,
// such as IndexedDB in a browser. Start with [Open].
//
// A record has a row under its feed, space and key. A second pair has the number
// of its last change, in the order of the numbers: these pairs are the feeds of
// store.Replica, and the text index and the mirrors of vectors read them to catch
// up. A deleted record has a tombstone in place of its row. Large values are stored
// once per SHA-256, with the number of rows that refer to them.
//
// One process writes at a time (see [DB.Lock]), others can read. Every write is one
// atomic batch of pairs.
package keyed

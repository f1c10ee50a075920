// Package recall finds entries of the long-term memory and files by similarity.
// Their vectors are in a collection of a [store.VectorIndex], each with the hash
// of its content. [Recall.Backfill] creates missing vectors, and [Recall.Search]
// leaves out documents that have changed since. Start with [New].
package recall

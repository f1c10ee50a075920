// Package recall finds entries of the long-term memory and files by likeness:
// their vectors lie in a collection of a [store.VectorIndex], each with the hash
// of the content that it was made of. [Recall.Backfill] makes what is missing,
// and [Recall.Search] gives nothing that has changed since. Start with [New].
package recall

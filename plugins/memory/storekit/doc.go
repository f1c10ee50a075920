// Package storekit has the common parts of stores of package store: checks of
// keys, entries, documents and vectors, the canonical form of values, conditions
// and orders of documents, and exact search among vectors. A store that uses them
// accepts and finds the same as the stores of this module. Their use is optional.
//
// Start with [Entries] for a LongTermMemory, [Merge] and [Select] for a
// MetadataStore, and [CheckItems] and [Nearest] for a VectorIndex.
package storekit

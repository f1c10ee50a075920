// Package storekit has the parts that the stores of package store have in common:
// checks of keys, entries, documents and vectors, the canonical form of values,
// conditions and orders of documents, and exact search among vectors. A store that
// uses them refuses and finds the same as the stores of this module; none has to.
//
// Begin with [Entries] for a LongTermMemory, [Merge] and [Select] for a
// MetadataStore, and [CheckItems] and [Nearest] for a VectorIndex.
package storekit

// Package vectors is [store.VectorIndex] on an embedded database: the items are
// rows, and each collection has an index of package vector as its companion
// (collection.go). Start with [New].
package vectors

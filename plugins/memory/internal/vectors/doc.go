// Package vectors has the rows of vectors in an embedded database, where each collection
// has an index of package vector as its companion (collection.go), and the checks and
// records of items that all databases share (item.go). Start with [New].
package vectors

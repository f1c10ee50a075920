// Package blob implements [store.BlobStorage] in a folder of the file system, and in a
// database that stores parts ([Parts]).
// Start with [Open].
package blob

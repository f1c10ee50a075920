// Package blob implements [store.BlobStorage] in a folder of the file system.
// Start with [Open].
package blob

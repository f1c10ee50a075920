// Package content keeps byte strings as blobs under their SHA-256. The row or
// document that names a blob is written after it, so that a crash in between
// leaves an unused blob; [Store.Sweep] removes unused blobs. Start with [New].
package content

// Package content keeps byte strings as blobs under their SHA-256. A row or a
// document that names such a blob is written after it, so that a crash between
// leaves a blob that nothing names; [Store.Sweep] removes those. Start with
// [New].
package content

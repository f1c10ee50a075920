// Package file keeps a workflow's files. A file is a document of kind "file"
// under its path (file.go, write.go, read.go) and a blob under its hash
// (package content), so that what the document says and what the file holds
// never disagree: the blob is written first, and the document in one
// transaction. Files with the same content share a blob, and moving files
// changes documents only. Start with [New].
//
// On top of that stand searches: grep.go for lines, conditions.go and
// jsonpath.go for fields of JSON documents. Paths that reach this package are
// clean (package sdk/confine); which of them may be written is the caller's
// business.
package file

// Package file stores a workflow's files. A file is a document of kind "file" under its path (file.go, write.go,
// read.go) and a blob under the hash of its content (package content). The blob is written first, then the document in
// one transaction, so a file's description always matches its content. Files with the same content share a blob, and
// moving a file changes its document only. Start with [New].
//
// Searches are in grep.go, for lines, and in documents.go, for fields of JSON
// documents. The caller passes clean paths (package sdk/x/confine) and decides
// which of them can be written.
package file

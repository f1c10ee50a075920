// Package documents has what the drivers of documents share: checks and merges of changes (merge.go), and the SQL of
// queries and views of their bodies (conditions.go, view.go).
package documents

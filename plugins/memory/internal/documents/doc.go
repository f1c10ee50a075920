// Package documents has the rows of documents in an embedded database ([Rows]), and the
// checks, conditions and records of documents that all databases share.
package documents

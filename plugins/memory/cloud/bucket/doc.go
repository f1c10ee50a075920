// Package bucket is a memory in an SQLite database on object storage: Amazon S3
// and compatible services, Google Cloud Storage, Azure Blob Storage.
//
// A device that has the lease works on a copy of the database with the embedded
// engine (tenure.go), and publishes the pages that it has changed (publish.go) as
// a segment (segment.go) with a new head (head.go), which is only written on the
// condition that nobody else has written one. docs/design/020-bucket.md has the
// decisions.
package bucket

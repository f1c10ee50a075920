// Package bucket is a memory in an SQLite database on object storage: Amazon S3
// and compatible services, Google Cloud Storage, Azure Blob Storage.
//
// The device that holds the lease works on a copy of the database with the
// embedded engine (holder.go). It publishes the changed pages (publish.go) as a
// segment (segment.go) with a new head (head.go), which is a conditional write
// that fails if another device has written one. docs/design/020-bucket.md has the
// decisions.
package bucket

// Package objstore reads and writes the objects of Amazon S3 and compatible
// services, Google Cloud Storage and Azure Blob Storage. Start with [Open],
// which takes an address such as s3://bucket/prefix and the schemes that the
// program links: those of the packages s3, gcs and azure.
//
// It is what plugins share that keep data in object storage. Each of the three
// packages is a thin driver of a vendor's client; this package adds what all of
// them need: checked addresses and names, connections that time out when nothing
// moves, no unencrypted connections except to the same machine, downloads that
// continue after a broken connection, conditional writes that are idempotent,
// and errors with a type and without secrets.
package objstore

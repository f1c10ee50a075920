// Package objstore reads and writes the objects of Amazon S3 and compatible
// services, Google Cloud Storage and Azure Blob Storage. Start with [Open], which
// takes an address such as s3://bucket/prefix and the schemes that the program links,
// from the packages s3, gcs and azure.
//
// Plugins that keep data in object storage share it. Each of the three packages is a
// thin driver of a vendor's client; this package adds their common needs: checked
// addresses and names, connections that time out when nothing moves, no unencrypted
// connections except to the same machine, downloads that continue after a broken
// connection, idempotent conditional writes, and typed errors without secrets.
package objstore

// Package bundle reads and writes bundle files: one plugin for several
// platforms in one file with its manifest, licence, bill of materials and
// documentation, and the signature next to it.
//
// A bundle is a tar archive. Its first entry is the [Index], which names every
// file with its digest. Each content follows once, compressed, as
// blobs/SHA256.gz in the order of the index. The last entry is a digest of all
// preceding bytes, so that any change is detected before the contents are
// interpreted.
//
// Start with [Write] and [Open].
package bundle

// Package bundle reads and writes bundle files: one plugin for several
// platforms in one file with its manifest, licence, bill of materials and
// documentation, and the signature next to it.
//
// A bundle is a tar archive. Its first entry is the [Index], which names every
// file with its digest. Each content follows once, compressed, as
// blobs/SHA256.gz in the order of the index. The last entry has the digest of
// all bytes before it, so that a changed byte anywhere is noticed before
// anything in the file is interpreted.
//
// Start with [Write] and [Open].
package bundle

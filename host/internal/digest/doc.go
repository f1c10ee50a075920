// Package digest computes the SHA-256 of files. [Cache] stores the digests, so
// that a plugin's binary is read only after it has changed. Start with
// [Cache.Of].
package digest

// Package digest computes the SHA-256 of files. [Cache] remembers it, so that
// the binary of a plugin is read only after it has changed. Start with
// [Cache.Of].
package digest

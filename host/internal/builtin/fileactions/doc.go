// Package fileactions is the host's bundle file: file.read, write, append,
// exists, list and delete, all below the one directory that settings.file
// names (package confine). Start with [Bundle].
package fileactions

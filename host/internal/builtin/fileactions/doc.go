// Package fileactions is the host's bundle file: file.read, write, append,
// exists, list and delete, all below the directory in settings.file (package
// confine). Start with [Bundle].
package fileactions

// Package replica has what the records of all memories share: which documents are
// records, the contents of files, and the state that an embedded memory has in common
// with others.
package replica

// Package confine keeps the file paths of a workflow inside of one directory.
//
// [Clean] refuses what looks like an attempt to get out; [Root] opens, writes
// and lists files in a way that cannot get out even where the text looked
// innocent, since the operating system resolves every name below the root's
// handle. Start with [Open]. All failures are *tea.Error values.
package confine

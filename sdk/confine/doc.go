// Package confine keeps paths that come from outside, from a
// workflow or a model, inside of one directory. The host's file actions and
// plugins use it alike.
//
// [Clean] refuses what looks like an attempt to get out; [Root] opens, writes
// and lists files in a way that cannot get out even where the text looked
// innocent, since the operating system resolves every name below the root's
// handle. Start with [Open]. All failures are *tea.Error values.
package confine

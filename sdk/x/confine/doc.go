// Package confine keeps paths that come from outside, from a workflow or a
// model, inside of one directory. The host's file actions and plugins use it.
//
// [Clean] refuses paths that look like an attempt to get out. [Root] opens,
// writes and lists files in a way that cannot get out in any case, because the
// operating system resolves every name below the handle of the root. Start with
// [Open]. All failures are *tea.Error values.
package confine

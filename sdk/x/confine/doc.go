// Package confine keeps untrusted paths, from a workflow or a model, inside one
// directory. The host's file actions and plugins use it.
//
// [Clean] refuses paths that look like an attempt to leave the directory. [Root] opens,
// writes and lists files in a way that can never leave it, because the operating system
// resolves every name below the handle of the root. Start with [Open]. All failures are
// *tea.Error values.
package confine

// Package conform checks that a plugin follows the protocol. It does not need package
// testing: `tea plugin test` runs it on a binary, and package teatest inside a test.
//
// Start with [Suite]. A [Target] is the plugin to check: a bundle that is
// [Linked], or a [Process] that [Start] starts. [Probe] is the reference for
// plugins in other languages.
package conform

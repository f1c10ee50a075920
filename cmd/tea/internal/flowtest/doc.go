// Package flowtest runs the tests of workflows: files that say what goes in,
// which actions are replaced by what, and what must come out.
//
// Start with [Load] and [Suite.Run]. The format stands in
// docs/guide/testing.md.
package flowtest

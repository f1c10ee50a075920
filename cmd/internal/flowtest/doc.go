// Package flowtest runs the tests of workflows: files that define the input,
// the results of replaced actions, and the expected outcome.
//
// Start with [Load] and [Suite.Run]. docs/guide/testing.md describes the
// format.
package flowtest

// Package report writes output for people: diagnostics with their source lines,
// the progress of a run and its outcome. All such output is formatted here.
//
// Start with [New]. On a terminal a [Report] draws a live line for each running
// node; elsewhere it prints a line when a node ends.
package report

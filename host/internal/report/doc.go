// Package report says to a person what happens: the wording of diagnostics
// with the line they are about, the progress of a run and how it ended. It is
// the only place that does.
//
// Start with [New]. On a terminal a [Report] draws a live line for each node
// that is at work; elsewhere it prints a line when something ends.
package report

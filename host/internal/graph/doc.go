// Package graph is the compiled, immutable form of a workflow: nodes with
// their bodies, templates and Lua compiled, and for each node where the run
// goes next. It is pure: no I/O, nothing runs here.
//
// Start with [Compile]. The engine walks a [Graph]; [Check] adds the checks
// of validate --strict.
package graph

// Package graph compiles a workflow into an immutable graph: nodes with
// compiled bodies, templates and Lua code, and the routes between them. It does
// no I/O and runs nothing.
//
// Start with [Compile]. The engine walks a [Graph]; [Check] adds the checks of
// validate --strict.
package graph

// Package diagcode is the one list of diagnostic codes. A code is stable: it
// is never given a second meaning, and docs/errors has a page for it.
//
//	TEA10xx  files and YAML
//	TEA11xx  keys and types of the workflow file
//	TEA12xx  the graph
//	TEA13xx  templates, conditions, Lua
//	TEA14xx  actions and their parameters
//	TEA15xx  imports, subgraphs, plugins
//	TEA16xx  settings, secrets, environment
//	TEA2xxx  errors while a run goes on
//
// Start with [All]. To add a code, add a constant and its line in the table.
package diagcode

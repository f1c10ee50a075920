// Package diagcode lists the diagnostic codes. A code is stable: its meaning
// never changes, and docs/errors has a page for it.
//
//	TEA10xx  files and YAML
//	TEA11xx  keys and types of the workflow file
//	TEA12xx  the graph
//	TEA13xx  templates, conditions, Lua
//	TEA14xx  actions and their parameters
//	TEA15xx  imports, subgraphs, plugins
//	TEA16xx  settings, secrets, environment
//	TEA2xxx  errors during a run
//
// To add a code, add a constant and its page.
package diagcode

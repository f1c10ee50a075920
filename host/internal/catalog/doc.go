// Package catalog finds the action behind a name, whether it is linked into
// the host, lives in a plugin process or is a Lua function of a module.
//
// Start with [New]; add bundles, plugins and modules, then hand the catalog
// to the engine. Bundles are opened when their first action is called.
package catalog

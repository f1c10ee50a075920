// Package catalog resolves action names, whether the action is linked into the
// host, runs in a plugin process or is a Lua function of a module.
//
// Start with [New]; add bundles, plugins and modules, then pass the catalog to
// the engine. A bundle is opened when the first of its actions is called.
package catalog

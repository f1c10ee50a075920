// Package memory is the bundle of everything an agent remembers: short-term and
// long-term memory, vectors, sessions, files, tables and the context that is
// assembled from them.
//
// Start with [Bundle]. Its Open makes a [Memory] for one set of settings; the
// actions are methods of Memory, one file per family (shortterm.go, ltm.go,
// vector.go, session.go, file.go, grep.go, catalog.go, data.go, context.go), and
// each family uses a package below internal/. The contract between families and
// databases is store, the databases themselves are internal/engine.
// docs/design/004-memory.md has the decisions.
package memory

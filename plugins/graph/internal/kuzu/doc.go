// Package kuzu is the backend cypher: the embedded graph database Kuzu, whose
// query language is Cypher. Start with [Open].
//
// The database is a C++ library that is loaded when a graph is opened, from a
// folder that scripts/kuzu prepares: the library of Kuzu's released Python
// package, and a small one that is compiled from plugins/graph/kuzu and has C
// functions that Go calls without cgo. Builds with the tag lite and those for
// other platforms than linux/amd64 and linux/arm64 do not have the backend.
package kuzu

// LibraryVariable is the environment variable with the file of the library, for
// one that is neither next to the plugin nor in the user's cache. No setting of a
// workflow has it: a checkout would choose the code that is loaded.
const LibraryVariable = "TEA_GRAPH_LIBRARY"

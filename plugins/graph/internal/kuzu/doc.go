// Package kuzu is the backend cypher: the embedded graph database Kuzu, whose
// query language is Cypher. Start with [Open].
//
// The database is a C++ library that is loaded when a graph is opened, from a
// folder that scripts/kuzu prepares. The folder contains the library of Kuzu's
// Python package, and a small one that is compiled from plugins/graph/kuzu, with C
// functions that Go calls without cgo. The backend needs linux/amd64 or linux/arm64,
// and a build without the tag lite.
package kuzu

// LibraryVariable is the environment variable that names the library's file, if it is
// neither next to the plugin nor in the user's cache. It is not a setting of a workflow:
// a checkout could choose the code that is loaded.
const LibraryVariable = "TEA_GRAPH_LIBRARY"

// Package engine runs a compiled graph.
//
// [Execute] walks the graph from its start. Each execution of a node has a path
// ("fetch", "fetch#2" on its second visit, "each[3]/fetch" inside a map; package
// execpath). Its record is appended to the journal under that path before its
// successor starts. A resumed run walks the same way again: if a path is recorded,
// the recorded result is applied instead of running the node. Package replay reads
// and writes the records. Recovery from interrupts, failures and crashes needs no
// special code, even in nested branches and loops.
//
// A frame is one sequence of nodes on one state: the run itself, a branch, a
// loop's body, a subgraph. Frames nest; each runs in one goroutine.
//
// The graph contains compiled Lua and templates, so the engine imports packages
// script and expr for their environments and errors. It calls actions and
// stores records through the small interfaces in options.go; it does not import
// a plugin or a builtin action.
package engine

// Package engine runs a compiled graph.
//
// [Execute] walks the graph from its start. Each execution of a node has a
// path ("fetch", "fetch#2" on its second visit, "each[3]/fetch" inside a
// map); what it did is appended to the journal under that path before its
// successor starts. A resumed run walks the same way again: where the journal
// knows a path, the recorded result is applied instead of running the node.
// So interrupts, failures and crashes anywhere, in nested branches and loops
// too, need no code of their own to come back.
//
// A frame is one sequence of nodes on one state: the run itself, a branch, a
// loop's body, a subgraph. Frames nest; each runs in one goroutine.
//
// The package knows plugins and storage only by the small interfaces in
// options.go.
package engine

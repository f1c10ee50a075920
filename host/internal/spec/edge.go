package spec

import "github.com/the-edge-agent/tea/sdk/diag"

// Edge is one entry of edges. Several targets, or Parallel, make a fan-out.
type Edge struct {
	diag.Pos
	From Text
	To   []Text
	// When guards the edge; nil = the default.
	When *Text
	// Condition is Lua or Jinja code that returns the name of a target.
	Condition *Text
	Targets   []Target
	Default   *Text
	Parallel  bool
	// FanIn is the join of the branches; nil = found by the graph.
	FanIn *Text
}

// Target is one entry of an edge's targets: result -> node.
type Target struct {
	Result string
	To     Text
}

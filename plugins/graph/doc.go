// Package graph is the bundle of an agent's knowledge graph: entities and
// relations in an embedded database, with traversals, search, algorithms and
// facts that change over time.
//
// Start with [Bundle]. Its Open makes a [Graph] for one set of settings; the
// actions are methods of Graph, one file a family (entity.go, relation.go,
// traverse.go, search.go, context.go). What a database must do is
// internal/store; everything else is written once above it.
// docs/design/015-graph.md has the decisions.
package graph

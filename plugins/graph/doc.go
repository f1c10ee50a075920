// Package graph is the bundle of an agent's knowledge graph: entities and
// relations in an embedded database, with traversals, search, algorithms and
// facts that change over time.
//
// Start with [Bundle]. Its Open returns a [Graph] for one set of settings; the
// actions are methods of Graph, one file per family (entity.go, relation.go,
// traverse.go, search.go, context.go). internal/store is the contract for
// databases; everything else is written once above it. docs/design/015-graph.md
// has the decisions.
package graph

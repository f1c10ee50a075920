// Package inspect renders a compiled graph, or a graph of entities, as text, JSON,
// DOT, Mermaid or SVG.
//
// Start with [New] and [FromCytoscape], which return a [Diagram] of nodes and edges,
// and [Diagram.Draw].
package inspect

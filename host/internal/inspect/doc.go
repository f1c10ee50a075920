// Package inspect renders a compiled graph as text, JSON, DOT, Mermaid or SVG.
//
// Start with [New], which converts a graph to a [Diagram] of nodes and edges,
// and [Diagram.Draw].
package inspect

// Package inspect draws a compiled graph for people and programs: as text,
// JSON, DOT, Mermaid and SVG.
//
// Start with [New], which brings a graph into a [Diagram] of nodes and edges;
// the formats draw that.
package inspect

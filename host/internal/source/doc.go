// Package source reads workflow files: it turns bytes into a tree of [Node]
// values with positions. It handles YAML and overlays; package spec interprets
// the keys.
//
// Anchors, aliases and merge keys are resolved and duplicate keys are rejected.
// File size, nesting and the expansion of aliases are bounded. Scalars follow
// the YAML 1.2 core schema: yes, on and 2024-01-01 are strings, and 0777 is the
// number 777.
//
// Start with [Parse]; [Merger.Merge] applies an overlay to a tree.
package source

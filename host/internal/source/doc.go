// Package source reads workflow files: bytes to a tree of [Node] values, each
// with the place it came from. It knows YAML and overlays, not workflows.
//
// Anchors, aliases and merge keys are resolved, duplicate keys refused, and
// everything a hostile file could blow up (size, nesting, aliases) bounded.
// Scalars follow the YAML 1.2 core schema: yes, on, 0777 and 2024-01-01 are
// what they look like, two strings, the number 777 and a string.
//
// Start with [Parse]; [Merge] lays an overlay over a tree.
package source

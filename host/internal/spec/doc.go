// Package spec turns the YAML of a workflow file into a typed [Workflow] and
// finds every mistake that can be seen in the file alone: unknown keys, wrong
// types, missing names. What needs the whole graph (targets, reachability,
// actions' parameters) is found by package graph.
//
// Aliases are resolved here: whoever reads a Workflow sees one name for each
// thing. Start with [Parse].
package spec

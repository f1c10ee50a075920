// Package spec turns the YAML of a workflow file into a typed [Workflow] and
// finds every mistake that can be seen in the file alone: unknown keys, wrong
// types, missing names. What needs the whole graph (targets, reachability,
// actions' parameters) is found by package graph.
//
// Aliases are resolved here: whoever reads a Workflow sees one name for each
// thing. Start with [Load] and [Parse].
//
// Inside, a grammar lists every key with its shape. The checker compares a
// document with it and reports; the decoder then builds the workflow and
// reports keys that exclude or need each other. The JSON Schema ([JSONSchema])
// and docs/reference/workflow.md come from the same grammar: a new key is one
// line there and the line that reads it.
package spec

// Package spec turns the YAML of a workflow file into a typed [Workflow] and
// reports every mistake that is visible in the file alone: unknown keys, wrong
// types, missing names. Package graph reports mistakes that concern the whole
// graph: targets, reachability, the parameters of actions.
//
// Aliases of keys are resolved here: a Workflow has one name for each thing.
// Start with [Load] and [Parse].
//
// A grammar lists every key with its shape. The checker compares a document with
// it; the decoder then builds the workflow and reports keys that exclude or require
// each other. The JSON Schema ([JSONSchema]) and docs/reference/workflow.md are
// generated from the same grammar: a new key needs one line in it and the code that
// reads it.
package spec

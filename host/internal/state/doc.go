// Package state holds the value that a workflow's nodes read and change: one
// JSON object, shared between branches until one writes.
//
// Start with [New]; branches take a [State.Fork]; a node's result goes in by
// [State.Apply], which runs the reducers and checks the types of [Schema].
package state

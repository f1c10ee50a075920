// Package state holds the state that a workflow's nodes read and change: one JSON
// object, shared between branches until one of them writes.
//
// Start with [New]; branches use [State.Fork]; [State.Apply] merges a node's update,
// runs the reducers and checks the types of [Schema].
package state

// Package store is the contract between the graph and its databases. Start with
// [Store], which every backend implements. A backend is small: traversals, filters,
// ranking, temporal rules, algorithms, import and export are written once, above this
// interface, so that every backend returns the same results in the same order.
//
// Package storetest has the suite that a backend must pass.
package store

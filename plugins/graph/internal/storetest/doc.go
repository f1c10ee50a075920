// Package storetest is the conformance suite of the graph's databases. Start with
// [Run].
package storetest
